// The main function of test binaries that run `.mgc` files.

#ifndef MGC_TESTS_FILETEST_FILETEST_MAIN_H_
#define MGC_TESTS_FILETEST_FILETEST_MAIN_H_

#include "tests/filetest/filetest.h"

namespace mgc {

// Runs every file named in `argv` as one gtest; with `--update`, rewrites them instead. Returns the
// exit code.
int FileTestMain(int argc, char** argv, const PassRunner& passes);

}  // namespace mgc

#endif  // MGC_TESTS_FILETEST_FILETEST_MAIN_H_
