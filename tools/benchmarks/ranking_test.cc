#include "tools/benchmarks/ranking.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(RankingTest, OrdersThatAgreeOrAreReversed) {
  EXPECT_DOUBLE_EQ(*RankCorrelation({{1, 10, 0}, {2, 30, 0}, {3, 31, 0}}), 1);
  EXPECT_DOUBLE_EQ(*RankCorrelation({{3, 10, 0}, {2, 30, 0}, {1, 31, 0}}), -1);
}

// 1 - 6 * (0 + 1 + 1 + 0) / (4 * 15), the formula for ranks without ties.
TEST(RankingTest, OfTwoExchangedNeighboursOfFour) {
  EXPECT_DOUBLE_EQ(*RankCorrelation({{1, 1, 0}, {3, 2, 0}, {2, 3, 0}, {4, 4, 0}}), 0.8);
}

// Measured ranks 1, 2.5, 2.5, 4 beside the same: the exchange is not held against the prediction.
TEST(RankingTest, PairsWithinTwiceTheSpreadAreTies) {
  EXPECT_DOUBLE_EQ(*RankCorrelation({{1, 1, 0}, {3, 2, 0.5}, {2, 3, 0}, {4, 4.5, 0}}), 1);
  EXPECT_TRUE(AreTied({1, 10, 0.5}, {1, 11, 0}));
  EXPECT_TRUE(AreTied({1, 10, 0}, {1, 11, 0.5}));
  EXPECT_FALSE(AreTied({1, 10, 0.4}, {1, 11, 0.4}));
  EXPECT_EQ(TiedPairs({{1, 10, 0.5}, {1, 11, 0}, {1, 11, 0}, {1, 20, 0}}), 3);
}

// Predicted ranks 1.5, 1.5, 3 beside 1, 2, 3: (0.5 + 0 + 1) / sqrt(1.5 * 2).
TEST(RankingTest, EqualPredictionsShareARank) {
  EXPECT_NEAR(*RankCorrelation({{1, 1, 0}, {1, 2, 0}, {2, 3, 0}}), 0.8660254, 1e-7);
}

TEST(RankingTest, NothingIsSaidOfWhatCannotBeToldApart) {
  EXPECT_FALSE(RankCorrelation({}).has_value());
  EXPECT_FALSE(RankCorrelation({{1, 1, 0}}).has_value());
  EXPECT_FALSE(RankCorrelation({{1, 1, 9}, {2, 2, 9}}).has_value());
  EXPECT_FALSE(RankCorrelation({{1, 1, 0}, {1, 2, 0}}).has_value());
}

TEST(RankingTest, ErrorsAreSharesOfWhatWasMeasured) {
  const PredictionError error = ErrorOf({{90, 100, 0}, {220, 200, 0}, {120, 100, 0}});
  EXPECT_NEAR(error.mean, 0.4 / 3, 1e-12);
  EXPECT_NEAR(error.worst, 0.2, 1e-12);
  EXPECT_EQ(ErrorOf({}).worst, 0);
}

}  // namespace
}  // namespace mgc
