#include "runtime/generate/choose_token.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

const std::vector<float> kLogits = {0.5f, 2.0f, -1.0f, 2.0f, 1.0f};

// How often each token is drawn.
std::vector<double> Shares(const SamplingOptions& options, int draws) {
  std::vector<double> shares(kLogits.size(), 0);
  for (int i = 0; i < draws; ++i) {
    shares[static_cast<size_t>(ChooseToken(kLogits, options, i))] += 1.0 / draws;
  }
  return shares;
}

// The softmax over some of them.
std::vector<double> Softmax(double temperature, const std::vector<size_t>& of) {
  double sum = 0;
  for (const size_t i : of) sum += std::exp(kLogits[i] / temperature);
  std::vector<double> shares(kLogits.size(), 0);
  for (const size_t i : of) shares[i] = std::exp(kLogits[i] / temperature) / sum;
  return shares;
}

void ExpectShares(const SamplingOptions& options, const std::vector<double>& expected) {
  constexpr int kDraws = 40000;
  const std::vector<double> shares = Shares(options, kDraws);
  for (size_t i = 0; i < expected.size(); ++i) {
    // Five standard deviations.
    const double spread = 1e-9 + 5 * std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    EXPECT_NEAR(shares[i], expected[i], spread) << "token " << i;
  }
}

TEST(ChooseTokenTest, WithoutTemperatureTheFirstOfTheMostProbable) {
  EXPECT_EQ(ChooseToken(kLogits, {}, 7), 1);
}

TEST(ChooseTokenTest, TokensAreDrawnAsOftenAsTheyAreProbable) {
  SamplingOptions options;
  options.temperature = 1;
  ExpectShares(options, Softmax(1, {0, 1, 2, 3, 4}));
  options.temperature = 0.5;
  ExpectShares(options, Softmax(0.5, {0, 1, 2, 3, 4}));
}

TEST(ChooseTokenTest, TopKKeepsTheMostProbableAndOfEqualOnesTheFirst) {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 3;
  ExpectShares(options, Softmax(1, {1, 3, 4}));
  options.top_k = 1;
  ExpectShares(options, Softmax(1, {1}));
  options.top_k = 100;
  ExpectShares(options, Softmax(1, {0, 1, 2, 3, 4}));
}

TEST(ChooseTokenTest, TopPKeepsAsFewAsHaveTheProbability) {
  SamplingOptions options;
  options.temperature = 1;
  // The two of 2.0 have 0.374 each, 1.0 has 0.138.
  options.top_p = 0.7;
  ExpectShares(options, Softmax(1, {1, 3}));
  options.top_p = 0.76;
  ExpectShares(options, Softmax(1, {1, 3, 4}));
  options.top_p = 0.01;
  ExpectShares(options, Softmax(1, {1}));
  options.top_k = 2;  // of which each has a half
  options.top_p = 0.6;
  ExpectShares(options, Softmax(1, {1, 3}));
}

TEST(ChooseTokenTest, WhatIsDrawnIsOfSeedAndPosition) {
  SamplingOptions a;
  a.temperature = 3;
  a.seed = 1;
  SamplingOptions b = a;
  b.seed = 2;
  int others = 0;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ChooseToken(kLogits, a, i), ChooseToken(kLogits, a, i));
    others += ChooseToken(kLogits, a, i) != ChooseToken(kLogits, b, i) ? 1 : 0;
  }
  EXPECT_GT(others, 20);
}

TEST(ChooseTokenTest, WhatIsNotANumberIsNotChosen) {
  EXPECT_EQ(ChooseToken({0.0f, std::numeric_limits<float>::quiet_NaN()}, {}, 0), -1);
  EXPECT_EQ(ChooseToken({}, {}, 0), -1);
}

TEST(ChooseTokenTest, OptionsAreChecked) {
  EXPECT_TRUE(CheckSampling({}).empty());
  SamplingOptions wrong;
  wrong.temperature = -1;
  wrong.top_k = -1;
  wrong.top_p = 0;
  EXPECT_THAT(std::string(CheckSampling(wrong).ToStatus().message()),
              testing::AllOf(testing::HasSubstr("temperature"), testing::HasSubstr("top-k"),
                             testing::HasSubstr("top-p")));
}

}  // namespace
}  // namespace mgc
