#include "tests/filetest/filetest_main.h"
#include "tests/filetest/pass_runner.h"

int main(int argc, char** argv) { return mgc::FileTestMain(argc, argv, mgc::RunPassesByName); }
