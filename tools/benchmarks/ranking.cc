#include "tools/benchmarks/ranking.h"

#include <algorithm>
#include <cmath>

namespace mgc {
namespace {

constexpr double kTiedWithin = 2;  // spreads

// Of each time by one of its members.
std::vector<double> RanksOf(const std::vector<PredictedTime>& times, double PredictedTime::*by) {
  std::vector<double> ranks;
  for (size_t i = 0; i < times.size(); ++i) {
    double rank = 1;
    for (size_t j = 0; j < times.size(); ++j) {
      if (j == i) continue;
      if (AreTied(times[i], times[j]) || times[j].*by == times[i].*by) {
        rank += 0.5;
      } else if (times[j].*by < times[i].*by) {
        rank += 1;
      }
    }
    ranks.push_back(rank);
  }
  return ranks;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

bool AreTied(const PredictedTime& a, const PredictedTime& b) {
  return std::fabs(a.measured - b.measured) <= kTiedWithin * std::max(a.spread, b.spread);
}

int64_t TiedPairs(const std::vector<PredictedTime>& times) {
  int64_t tied = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    for (size_t j = 0; j < i; ++j) tied += AreTied(times[i], times[j]) ? 1 : 0;
  }
  return tied;
}

absl::optional<double> RankCorrelation(const std::vector<PredictedTime>& times) {
  if (times.empty()) return absl::nullopt;
  const std::vector<double> predicted = RanksOf(times, &PredictedTime::predicted);
  const std::vector<double> measured = RanksOf(times, &PredictedTime::measured);
  const double predicted_mean = MeanOf(predicted), measured_mean = MeanOf(measured);
  double both = 0, of_predicted = 0, of_measured = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double p = predicted[i] - predicted_mean, m = measured[i] - measured_mean;
    both += p * m;
    of_predicted += p * p;
    of_measured += m * m;
  }
  if (of_predicted == 0 || of_measured == 0) return absl::nullopt;
  return both / std::sqrt(of_predicted * of_measured);
}

PredictionError ErrorOf(const std::vector<PredictedTime>& times) {
  PredictionError error;
  for (const PredictedTime& time : times) {
    const double off = std::fabs(time.ratio() - 1);
    error.mean += off / static_cast<double>(times.size());
    error.worst = std::max(error.worst, off);
  }
  return error;
}

}  // namespace mgc
