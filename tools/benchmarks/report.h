// What a run of the training benchmark found, as text and as JSON.

#ifndef MGC_TOOLS_BENCHMARKS_REPORT_H_
#define MGC_TOOLS_BENCHMARKS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/benchmarks/training.h"

namespace mgc {

// Targets: training on one rank reaches this share of what the products alone allow, and eight
// ranks lose at most this share of one rank's tokens.
inline constexpr double kLeastOfProducts = 0.60;
inline constexpr double kMostLoss = 0.25;

// One side of the comparison: seconds of its repetitions, in order.
struct Timings {
  std::string name;
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;  // of all threads: on a busy machine the fairer measure
  std::vector<WorkShare> shares;    // empty for the products
  double shares_seconds = 0;        // of the step that the shares are of
  int64_t peak_bytes = 0;           // of one rank
};

double Median(std::vector<double> values);

// Numbers of side `a` over those of side `b`: the median over repetitions, each with its neighbour
// in time.
double PairedRatio(const std::vector<double>& a, const std::vector<double>& b);

struct TrainingReport {
  std::string model;
  int64_t layers = 0;
  int64_t tokens = 0;  // a step
  int workers = 0;
  double product_flops = 0;
  Timings products, one_rank, eight_ranks;

  double of_products() const { return PairedRatio(products.seconds, one_rank.seconds); }
  double loss() const { return 1 - PairedRatio(one_rank.seconds, eight_ranks.seconds); }
};

std::string ReportText(const TrainingReport& report);
std::string ReportJson(const TrainingReport& report);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_REPORT_H_
