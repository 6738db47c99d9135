// Many layouts of one model that train the same global batch, for whether predictions order them as
// they are measured.

#ifndef MGC_TOOLS_BENCHMARKS_LAYOUTS_H_
#define MGC_TOOLS_BENCHMARKS_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "tools/benchmarks/calibrate.h"
#include "tools/benchmarks/comparison.h"
#include "tools/benchmarks/comparisons.h"
#include "tools/benchmarks/ranking.h"

namespace mgc {

// The preset `gpt2-tiny`, widened until its steps are mostly products: 3 million parameters, of
// which eight ranks hold copies without trouble. What it is called in reports is `name`.
struct LayoutModel {
  std::string name;
  ModelConfig config;
};
absl::StatusOr<LayoutModel> DefaultLayoutModel();

// What is calibrated before: in f32, as layouts compute, and with fewer tokens and words than
// usual, since their products are no larger.
absl::StatusOr<CalibrationSetting> LayoutCalibration();

// A side for each layout, on 2, 4 and 8 ranks: every kind of parallelism, schedule, ZeRO and
// recomputation is in some of them. A side's name is the flags of mgc-compile that ask for it. Of
// `setting`, PyTorch and MPI have no part.
Comparison LayoutComparison(const BenchSetting& setting);

// A layout's predicted step beside the fastest of its steps: whatever else runs only adds to it.
// The spread says how well that is repeated: how far the fastest of every second turn lies from the
// fastest of the others; of one turn it is 0. The side has times.
PredictedTime StepTimeOf(const Timings& side, int workers);
// The same by the time of all threads, as a part for each worker: other programs take processors
// away and hardly change this.
PredictedTime BusyTimeOf(const Timings& side, int workers);

struct LayoutReport {
  std::string model;
  int64_t layers = 0;
  int workers = 0;
  std::string instructions;  // as BenchReport::instructions
  ComparisonResult result;   // of LayoutComparison
};

// A table, the fastest first; the rank correlation and the error of the predictions.
std::string LayoutsText(const LayoutReport& report);
std::string LayoutsJson(const LayoutReport& report);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_LAYOUTS_H_
