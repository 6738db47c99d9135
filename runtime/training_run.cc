#include "runtime/training_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

absl::Status CheckOptions(const Trainer& trainer, const RunOptions& options) {
  if (options.steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat("cannot train for ", options.steps, " steps"));
  }
  if (options.steps > trainer.most_steps()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.steps, " steps of ", trainer.executor().plan().global_batch_size,
        " samples are more samples than can be counted; nearest legal: ", trainer.most_steps(),
        " steps"));
  }
  if (options.eval_interval < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot evaluate every ", options.eval_interval, " steps"));
  }
  if (options.eval_interval > 0 && !trainer.can_evaluate()) {
    return absl::InvalidArgumentError("evaluation needs data (of its own, or a held-back tail)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTraining(Trainer& trainer, const RunOptions& options) {
  MGC_RETURN_IF_ERROR(CheckOptions(trainer, options));
  absl::optional<MetricsFile> metrics;
  if (!options.metrics_path.empty()) {
    MGC_ASSIGN_OR_RETURN(metrics, MetricsFile::Create(options.metrics_path));
  }
  for (int64_t step = 1; step <= options.steps; ++step) {
    MGC_ASSIGN_OR_RETURN(const StepRecord record, trainer.Step());
    if (metrics.has_value()) MGC_RETURN_IF_ERROR(metrics->Append(record));
    if (options.on_step) options.on_step(record);
    if (step == 1 && !options.gradients_path.empty()) {
      MGC_RETURN_IF_ERROR(trainer.WriteGradients(options.gradients_path));
    }
    if (options.eval_interval > 0 && step % options.eval_interval == 0) {
      MGC_ASSIGN_OR_RETURN(const EvalResult result, trainer.Evaluate());
      if (options.on_eval) options.on_eval(step, result);
    }
  }
  if (options.parameters_path.empty()) return absl::OkStatus();
  return trainer.WriteParameters(options.parameters_path);
}

}  // namespace mgc
