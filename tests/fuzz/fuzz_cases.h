// Fuzzing that every machine repeats: a fixed number of cases, each drawn from a seed of its own.

#ifndef MGC_TESTS_FUZZ_FUZZ_CASES_H_
#define MGC_TESTS_FUZZ_FUZZ_CASES_H_

#include <cstddef>
#include <functional>
#include <random>

namespace mgc {

// A number in [0, bound); `bound` is at least 1.
size_t Below(std::mt19937* random, size_t bound);

// Runs `once` with `cases` seeds, the same ones each time, up to the first that fails; the failure
// names its seed. Other seeds: --gtest_random_seed=N, N from 1 to 99999.
void RunFuzzCases(const char* what, int cases, const std::function<void(std::mt19937*)>& once);

// CPU time of this process so far; unlike time on the wall it does not grow with other work.
double CpuSeconds();

}  // namespace mgc

#endif  // MGC_TESTS_FUZZ_FUZZ_CASES_H_
