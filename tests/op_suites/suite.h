// What the derived suites share: names, comparison, seeds.

#ifndef MGC_TESTS_OP_SUITES_SUITE_H_
#define MGC_TESTS_OP_SUITES_SUITE_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/eval/op_case.h"
#include "gtest/gtest.h"

namespace mgc {

// Seed of every drawn operand; tests name it when they fail.
inline constexpr uint64_t kDrawSeed = 20240229;

inline std::string CaseName(const testing::TestParamInfo<BoundCase>& info) {
  return info.param.name;
}

// gtest prints parameters of failed tests with this.
inline void PrintTo(const BoundCase& bound, std::ostream* out) {
  *out << bound.name << " (" << bound.op_case->operands << "), drawn with seed " << kDrawSeed;
}

inline std::vector<double> AsReals(const RealTensor& tensor) {
  if (!tensor.is_index) return tensor.real;
  return std::vector<double>(tensor.index.begin(), tensor.index.end());
}

// Largest finite magnitude, at least 1e-30.
inline double Magnitude(const std::vector<double>& values) {
  double most = 1e-30;
  for (double x : values) most = std::isfinite(x) ? std::max(most, std::abs(x)) : most;
  return most;
}

// Expects `actual` within `relative` times the largest entry of `expected`; infinities equal.
inline void ExpectClose(const std::vector<double>& actual, const std::vector<double>& expected,
                        double relative, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const double bound = relative * Magnitude(expected);
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    ASSERT_NEAR(actual[i], expected[i], bound) << what << ", element " << i;
  }
}

template <class Keep>
std::vector<BoundCase> CasesWhere(Keep keep) {
  std::vector<BoundCase> kept;
  for (BoundCase& bound : AllCases()) {
    if (keep(bound)) kept.push_back(std::move(bound));
  }
  return kept;
}

}  // namespace mgc

#endif  // MGC_TESTS_OP_SUITES_SUITE_H_
