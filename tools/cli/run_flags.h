// The flags of mgc-run, under Megatron-LM's names where it has them.

#ifndef MGC_TOOLS_CLI_RUN_FLAGS_H_
#define MGC_TOOLS_CLI_RUN_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "runtime/train/trainer.h"
#include "runtime/train/training_run.h"
#include "tools/cli/data_flags.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"

namespace mgc {

// What a timeline holds unless it is said: steps 10 to 12, which are no warm-up; of a shorter run
// the last three.
inline constexpr int64_t kDefaultTraceSteps = 3;
inline constexpr int64_t kDefaultTraceFrom = 10;

struct RunFlags {
  std::vector<std::string> plans;
  DataFlags data;
  absl::optional<std::string> metrics, tensorboard, open_metrics, trace, dump_grads, dump_params;
  std::vector<std::string> inputs;  // NAME=FILE, as given
  absl::optional<int64_t> nproc, ranks_per_process, gpus;
  absl::optional<double> watchdog_seconds;
  absl::optional<std::string> save, load, resume, init, init_adapter;
  absl::optional<int64_t> save_interval, keep;
  bool wait_for_saves = false;
  bool copy_for_saves = false;
  absl::optional<double> save_seconds, exit_seconds;
  absl::optional<int64_t> exit_interval;
  absl::optional<std::string> run_dir, inject, check_finite, instruction_set, allreduce, device;
  bool no_cuda_graphs = false;
  bool tf32 = false;
  bool check_kernels = false;
  absl::optional<std::string> step_sizes;  // --step-batch-size-schedule
  absl::optional<int64_t> steps, seed, workers, rank, trace_steps, trace_from;
  bool json = false;
  bool check = false;              // the plan is to be resolved, not run
  bool stop_on_nonfinite = false;  // as given; it is the default
  bool no_stop_on_nonfinite = false;

  absl::optional<double> lr, min_lr, lr_warmup_init;
  absl::optional<int64_t> lr_warmup_steps, lr_decay_steps, lr_wsd_decay_steps;
  absl::optional<std::string> lr_decay_style, lr_wsd_decay_style;
  absl::optional<double> weight_decay, clip_grad;
  // One for each of HyperParameters, in their order.
  std::vector<absl::optional<double>> hyper =
      std::vector<absl::optional<double>>(HyperParameters().size());

  absl::optional<double> loss_scale, initial_loss_scale, min_loss_scale;
  absl::optional<int64_t> loss_scale_window, hysteresis;

  std::vector<std::string> eval_inputs;  // NAME=FILE, as given
  bool eval_only = false, by_document = false;
  absl::optional<int64_t> eval_interval, eval_steps, eval_tail_samples;
};

// The values of --allreduce.
inline constexpr char kAllReduceOrdered[] = "ordered";
inline constexpr char kAllReduceByMpi[] = "mpi";

void AddRunFlags(Flags* flags, RunFlags* out);

// What flags that are fine by themselves may still break together:
//   B8  min-lr or the warm-up's start above lr; a warm-up or a WSD decay longer than the decay
//   B9  a first loss scale below the least one
//   E1  evaluation without an interval, or with data twice
Diagnostics CheckRunFlags(const RunFlags& flags);

// F5: --inputs and --eval-inputs that name no input and no file of a tensor.
// F4: --resume with what is none of its words and no step.
// F6: what no run can do without, and paths that are in each other's way; the steps take stdout. A
// rank without a check. When to save, without where; what to go on from, without a folder.
// F7: two beginnings; to stop and not to stop; to wait for saves and to copy them; a loss scale
// that is fixed and one that changes; numbers of GPUs and checks of theirs without any, MPI's sums
// with them.
Diagnostics CheckRunUsage(const RunFlags& flags, const ParsedFlags& parsed);

// Of a process that `launcher` has started as one of `processes`, or nobody, whose name is empty.
// F7: --nproc in one of several. F8: all-reduces by MPI in one that nobody has started.
Diagnostics CheckLauncher(const RunFlags& flags, const std::string& launcher, int64_t processes);

// Whether MPI does the all-reduces.
bool LibraryAllReduces(const RunFlags& flags);

// L1: flags of a loss scale for a plan that has none.
// L2: a check of what overflows for a plan that leaves such steps out.
Diagnostics CheckLossScaleFlags(const RunFlags& flags, const Plan& plan);

// O1: rates of an optimizer that steps no parameter of the plan.
Diagnostics CheckOptimizerFlags(const RunFlags& flags, const Plan& plan);

// The files a run writes.
std::vector<NamedPath> ResultsOf(const RunFlags& flags);

// Without kernels and texts (OpenData). Steps become samples by the plan's global batch.
TrainOptions TrainOptionsOf(const RunFlags& flags, const Plan& plan);
// Without callbacks.
TrainingRunOptions RunOptionsOf(const RunFlags& flags);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_RUN_FLAGS_H_
