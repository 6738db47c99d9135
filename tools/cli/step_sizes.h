// `mgc-run --step-batch-size-schedule`: a run whose steps grow.
//
// A plan's step has some number of micro-batches; steps of fewer are made from its own lists
// (graph/plan/fewer_micro_batches.h), timed and proved as the plan is.

#ifndef MGC_TOOLS_CLI_STEP_SIZES_H_
#define MGC_TOOLS_CLI_STEP_SIZES_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "runtime/train/trainer.h"

namespace mgc {

// From sample `sample` of a run on its steps take `batch` samples.
struct StepSize {
  int64_t sample = 0;
  int64_t batch = 0;
};

// "0:256 10B:512": from how many tokens on a step takes how many samples, with blanks or commas
// between; K, M, B and T stand for powers of 1,000. A step begins with a whole sample of
// `seq_length` tokens. Sorted by their begin. As Megatron-LM's num_microbatches_calculator.py reads
// it. InvalidArgument with the word that is none of this.
absl::StatusOr<std::vector<StepSize>> ParseStepSizes(absl::string_view text, int64_t seq_length);

// B10: the first begins with the run, no two begin at one sample, the largest is the plan's global
// batch, and all are of whole micro-batches of all data-parallel ranks.
Diagnostics CheckStepSizes(const std::vector<StepSize>& sizes, const Plan& plan);

// What CheckStepSizes accepts, as a trainer takes it: steps of other sizes than the plan's are
// added to `made`, timed and not proved. All outlive the trainer.
absl::StatusOr<std::vector<StepsFrom>> MakeSteps(const std::vector<StepSize>& sizes,
                                                 const Plan& plan, std::deque<Plan>* made);

// All of that for a command: prints what is wrong. The exit code where that ends it.
absl::optional<int> ReadSteps(absl::string_view text, const Plan& plan, absl::string_view command,
                              std::deque<Plan>* made, std::vector<StepsFrom>* steps);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_STEP_SIZES_H_
