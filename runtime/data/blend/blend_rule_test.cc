#include "runtime/data/blend/blend_rule.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint32_t kSeed = 20261126;

// Small whole numbers, which lack the same again and again, or any.
std::vector<double> RandomWeights(std::mt19937& dice, bool whole) {
  std::vector<double> weights(1 + dice() % 12);
  for (double& weight : weights) {
    const double share = static_cast<double>(dice() % 10000) / 10000;
    weight = whole ? 1 + dice() % 9 : share * share + 0.003;
  }
  return weights;
}

TEST(BlendRuleTest, JumpsToWhatChoicesLeadTo) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 dice(kSeed);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<double> weights = RandomWeights(dice, trial % 2 == 0);
    SCOPED_TRACE(absl::StrJoin(weights, " "));
    const BlendRule rule(weights);
    std::vector<int64_t> samples(20);
    for (int64_t& sample : samples) sample = dice() % 100000;
    std::sort(samples.begin(), samples.end());
    BlendState walked = rule.First();
    for (const int64_t sample : samples) {
      while (walked.sample < sample) rule.Advance(&walked);
      const BlendState jumped = rule.Before(sample, rule.First());
      EXPECT_EQ(jumped.sample, sample);
      EXPECT_EQ(jumped.given, walked.given) << sample;
    }
  }
}

// Where none has walked: what is found at two places is one and the same run.
TEST(BlendRuleTest, JumpsFar) {
  const std::vector<std::vector<double>> cases = {
      {0.3, 0.7}, {0.2, 0.5, 0.05, 0.25}, std::vector<double>(16, 1), {0.001, 0.4, 0.599}, {1}};
  for (const std::vector<double>& weights : cases) {
    SCOPED_TRACE(absl::StrJoin(weights, " "));
    const BlendRule rule(weights);
    for (const int64_t sample : {int64_t{1000000007}, int64_t{1} << 45}) {
      BlendState state = rule.Before(sample - 20000, rule.First());
      while (state.sample < sample) rule.Advance(&state);
      EXPECT_EQ(rule.Before(sample, rule.First()).given, state.given) << sample;
      EXPECT_EQ(rule.Before(sample, state).given, state.given) << sample;
    }
  }
}

}  // namespace
}  // namespace mgc
