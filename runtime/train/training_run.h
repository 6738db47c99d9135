// A whole training run: steps, evaluations, metrics and the files a user asked for.

#ifndef MGC_RUNTIME_TRAIN_TRAINING_RUN_H_
#define MGC_RUNTIME_TRAIN_TRAINING_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/train/checkpoints.h"
#include "runtime/train/reports.h"
#include "runtime/train/trainer.h"

namespace mgc {

struct TrainingRunOptions {
  bool eval_only = false;       // evaluate once, train nothing; what is said of steps is left aside
  bool by_document = false;     // then each document of the evaluation's text by itself
  bool perplexity = false;      // of what it evaluates then: losses are means over tokens
  int64_t steps = 0;            // counted from the first; those of before a resume are among them
  int64_t eval_interval = 0;    // steps between evaluations; 0: none
  std::string gradients_path;   // gradients of the first step taken; empty: none
  std::string parameters_path;  // parameters at the end; empty: none
  CheckpointOptions checkpoints;
  // Stop as when stop_asked says so: behind each step that the interval divides, and behind the
  // first that ends so long after RunTraining was called. 0: never.
  int64_t exit_interval = 0;
  double exit_seconds = 0;
  // End at the first loss or gradient norm that is not finite, before anything more is computed
  // from it. Otherwise the first one is noted.
  bool stop_on_nonfinite = true;
  // Whether somebody wants the run to stop; asked after every step, in all processes.
  std::function<bool()> stop_asked;
  ReportOptions reports;
};

// Runs the steps, or the one evaluation; of several processes the first one writes metrics and
// calls back. Cancelled, with the step, when all have agreed to stop because one was asked to;
// where it saves checkpoints there is one of this step then. InvalidArgument for options that
// contradict each other or the trainer, OutOfRange for numbers that are not finite, with the step;
// further the errors of its parts. After any of them the steps done so far are in the metrics,
// checkpoints are as they were, and no parameters are written.
absl::Status RunTraining(Trainer& trainer, const TrainingRunOptions& options);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_TRAINING_RUN_H_
