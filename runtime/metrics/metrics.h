// What a training step and an evaluation report: a line for people, a JSON object for programs.

#ifndef MGC_RUNTIME_METRICS_METRICS_H_
#define MGC_RUNTIME_METRICS_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace mgc {

struct StepRecord {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean over what the model counts in the global batch, before the update
  std::map<std::string, double> other_losses;  // a model's loss terms behind the first, likewise
  double grad_norm = 0;                        // global, before clipping
  // Where the loss is scaled: the scale of the next step, and whether gradients overflowed, so that
  // this one has changed nothing.
  std::optional<double> loss_scale;
  bool left_out = false;
  double lr = 0;
  double ms = 0;                       // wall time of the step
  std::optional<double> predicted_ms;  // what the plan's cost model said
  double data_wait_ms = 0;             // of it, until the step's samples were there
  // One of the first steps of a process, which touch memory for the first time: no time to compare.
  bool warm_up = false;
  double tokens = 0;             // that the model counted in the step
  double tokens_per_second = 0;  // of what the model counts
  // Floating-point operations a second of all ranks together, what is recomputed included, and
  // which share they are of what the devices in use reach at most. None where nobody counted them.
  std::optional<double> flops_per_second;
  std::optional<double> peak_share;
  int64_t peak_bytes = 0;  // of the rank with the highest arena use
  // How long training has not gone on for checkpoints since the record before: outside of `ms`, and
  // within it where the update waited for one that was being written.
  double checkpoint_stall_ms = 0;
};

struct EvalRecord {
  int64_t step = 0;  // training steps done before; 0: none
  double loss = 0;   // mean over what the model counts in all samples taken, each once
  int64_t samples = 0;
  int64_t tokens = 0;
  std::optional<int64_t> document = std::nullopt;   // number of the one that was evaluated
  std::optional<double> perplexity = std::nullopt;  // of an evaluation that is all that a run does
};

// "step 10 | loss 4.2130 | grad norm 1.310 | lr 1.00e-03 | 43.0 ms (plan 41.2, +4.4%) | 95.0 k
// tokens/s | 1.9 G FLOP/s (2.1% of peak) | 212.0 MiB", without the end of line; `counted` is what
// the model counts; parts that the record lacks are left out. Other losses stand behind the first
// as "| router 0.0123", behind the norm "| loss scale 65536" where there is one, and "| left out"
// of a step that has changed nothing; "43.0 ms warm-up" says that the time is none to compare. At
// the end "| data wait 120.0 ms" and "| checkpoint stall 300.0 ms", of waits of 100 ms and a tenth
// of the step or more.
std::string StepLine(const StepRecord& record, absl::string_view counted = "tokens");

// {"step":10,"loss":...,"grad_norm":...,"lr":...,"ms":...,"tokens_per_second":...,...}, without the
// end of line: keys are those of docs/metrics.md. Numbers are in the shortest form that reads back
// exactly; those that are not finite are the strings "NaN", "Infinity", "-Infinity".
std::string StepJson(const StepRecord& record);

// "evaluation after step 10 | loss 4.2130 | 8 samples", without the end of line; a run that trains
// nothing says its perplexity too, "document 3 | loss 4.2130 | perplexity 67.56 | 120 tokens".
std::string EvalLine(const EvalRecord& record);

// {"step":10,"eval_loss":...,"eval_samples":8,"eval_tokens":...}, likewise; "eval_perplexity"
// and "document" too.
std::string EvalJson(const EvalRecord& record);

}  // namespace mgc

#endif  // MGC_RUNTIME_METRICS_METRICS_H_
