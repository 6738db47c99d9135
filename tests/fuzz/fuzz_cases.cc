#include "tests/fuzz/fuzz_cases.h"

#include <cstdint>
#include <ctime>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint32_t kFirstSeed = 20240911;
// Runs of different N share no seeds: 99,999 times this is less than 2^32, and no test has as many
// cases.
constexpr uint32_t kSeedsPerRun = 40'000;

}  // namespace

size_t Below(std::mt19937* random, size_t bound) {
  return std::uniform_int_distribution<size_t>(0, bound - 1)(*random);
}

void RunFuzzCases(const char* what, int cases, const std::function<void(std::mt19937*)>& once) {
  // The flag itself: what gtest makes of it is the time of day where it is not given.
  const auto run = static_cast<uint32_t>(GTEST_FLAG_GET(random_seed));
  uint32_t seed = kFirstSeed + run * kSeedsPerRun;
  std::cout << what << ": " << cases << " cases, seeds from " << seed << std::endl;
  for (int n = 0; n < cases && !testing::Test::HasFailure(); ++n, ++seed) {
    SCOPED_TRACE(absl::StrCat(what, ", seed ", seed));
    std::mt19937 random(seed);
    once(&random);
  }
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace mgc
