// A whole training run: steps, evaluations, metrics and the files a user asked for.

#ifndef MGC_RUNTIME_TRAINING_RUN_H_
#define MGC_RUNTIME_TRAINING_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/trainer.h"

namespace mgc {

struct RunOptions {
  int64_t steps = 0;
  int64_t eval_interval = 0;                       // steps between evaluations; 0: none
  std::string metrics_path;                        // metrics.jsonl; empty: none
  std::string gradients_path;                      // gradients of the first step; empty: none
  std::string parameters_path;                     // parameters at the end; empty: none
  std::function<void(const StepRecord&)> on_step;  // may be empty
  std::function<void(int64_t step, const EvalResult&)> on_eval;
};

// Runs the steps. InvalidArgument for options that contradict each other or the trainer; further
// the errors of its parts, after which the steps done so far are in the metrics.
absl::Status RunTraining(Trainer& trainer, const RunOptions& options);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAINING_RUN_H_
