// What the cost model says of a published run: the step of a plan that is compiled for it.

#ifndef MGC_TESTS_PUBLISHED_PREDICT_H_
#define MGC_TESTS_PUBLISHED_PREDICT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "tests/published/rows.h"

namespace mgc {

// The row's model. Errors of its preset.
absl::StatusOr<ModelConfig> ConfigOf(const PublishedRow& row);

// Its layout, with as many chunks a rank: in 16 bits throughout, gradients too where they are
// summed over data-parallel ranks; Llama 3 sums them in f32 and cuts the optimizer's states.
ParallelConfig LayoutOf(const PublishedRow& row, int64_t chunks);

// A row with its plans, one for each layout that the paper leaves open.
struct PredictedRow {
  PublishedRow row;
  std::vector<Plan> plans;
  double least = 0, most = 0;  // predicted, in TFLOP/s of one GPU
  double state_gib = 0;        // of a pipeline rank in the middle

  double middle() const { return (least + most) / 2; }
  // How far the middle is off, as a share of what was measured.
  double error() const;
  // The same of the state's bytes; 0 where the paper says nothing of them.
  double state_error() const;
};

// Compiles the row's plans: gpt2 with stored scores, or llama3-405b with its fused attention.
// Errors of the compiler.
absl::StatusOr<PredictedRow> PredictRow(const PublishedRow& row);

// The same rows where products reach `factor` times what they reach by the machine's description.
// Errors of the prediction.
absl::StatusOr<std::vector<PredictedRow>> WithProducts(std::vector<PredictedRow> rows,
                                                       double factor);

// The mean of all errors, without signs, and the largest.
double MeanError(const std::vector<PredictedRow>& rows);
double WorstError(const std::vector<PredictedRow>& rows);

// The factor at which the mean error of these rows is least, in steps of a hundredth.
absl::StatusOr<double> FitProducts(const std::vector<PredictedRow>& rows);

}  // namespace mgc

#endif  // MGC_TESTS_PUBLISHED_PREDICT_H_
