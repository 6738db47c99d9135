// Tests whose size is an argument of the program, `--cases=N`: a few cases among the other tests,
// many in a campaign (campaign.bzl).

#ifndef MGC_TESTS_VERIFY_DAMAGE_SIZED_TEST_H_
#define MGC_TESTS_VERIFY_DAMAGE_SIZED_TEST_H_

#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace mgc {

// Makes a test of a suite; all tests of one suite are of one class.
template <class Test>
void RegisterSized(const char* suite, const std::string& name, std::function<Test*()> make) {
#ifndef __clang_analyzer__  // it takes what gtest keeps for a leak
  testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, __FILE__, __LINE__, std::move(make));
#endif
}

// main(): registers the tests of that size, at least 1, and runs them. Returns the exit code; 2 for
// anything but gtest's own flags and `--cases=N`.
inline int RunSized(int argc, char** argv, const std::function<void(int cases)>& register_tests) {
  testing::InitGoogleTest(&argc, argv);
  absl::string_view argument = argc == 2 ? argv[1] : "";
  int cases = 0;
  if (!absl::ConsumePrefix(&argument, "--cases=") || !absl::SimpleAtoi(argument, &cases) ||
      cases < 1) {
    std::cerr << "usage: " << argv[0] << " --cases=N [--gtest_...]\n";
    return 2;
  }
  register_tests(cases);
  return RUN_ALL_TESTS();
}

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_SIZED_TEST_H_
