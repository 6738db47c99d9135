// How well predictions order what was measured, and how far they are off.

#ifndef MGC_TOOLS_BENCHMARKS_RANKING_H_
#define MGC_TOOLS_BENCHMARKS_RANKING_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"

namespace mgc {

// A time that was predicted and measured; all positive but the spread, which may be 0.
struct PredictedTime {
  double predicted = 0;
  double measured = 0;
  double spread = 0;  // how far a measurement of the same lies from another

  double ratio() const { return predicted / measured; }
};

// Whether two measurements are too close to say which is the shorter: within twice the larger
// spread.
bool AreTied(const PredictedTime& a, const PredictedTime& b);

// Pairs that are tied.
int64_t TiedPairs(const std::vector<PredictedTime>& times);

// Spearman's rank correlation of predicted and measured times, from -1 to 1. A tied pair counts as
// one in both orders, so that predictions that have all other pairs right reach 1. A rank is 1,
// plus 1 for each time that is shorter, plus 1/2 for each other one that is tied. None where all
// pairs are tied, or predicted alike.
absl::optional<double> RankCorrelation(const std::vector<PredictedTime>& times);

// How far predictions are off, as shares of what was measured; 0 of none.
struct PredictionError {
  double mean = 0, worst = 0;
};
PredictionError ErrorOf(const std::vector<PredictedTime>& times);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_RANKING_H_
