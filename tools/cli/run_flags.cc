#include "tools/cli/run_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/json.h"
#include "passes/config/nearest_legal.h"
#include "tools/cli/eval_flags.h"

namespace mgc {
namespace {

constexpr double kDefaultLr = 1e-3;
constexpr double kDefaultWeightDecay = 0.01;
constexpr int64_t kDefaultSeed = 1234;
// Records kept per rank and queue of a timeline: the first steps of a run.
constexpr int64_t kTraceRoom = int64_t{1} << 15;

std::vector<std::string> DynamicScaleFlags(const RunFlags& flags) {
  std::vector<std::string> given;
  if (flags.initial_loss_scale) given.push_back("--initial-loss-scale");
  if (flags.min_loss_scale) given.push_back("--min-loss-scale");
  if (flags.loss_scale_window) given.push_back("--loss-scale-window");
  if (flags.hysteresis) given.push_back("--hysteresis");
  return given;
}

LossScaleOptions LossScaleOf(const RunFlags& flags) {
  LossScaleOptions options;
  options.fixed = flags.loss_scale;
  options.initial = flags.initial_loss_scale.value_or(options.initial);
  options.min = flags.min_loss_scale.value_or(options.min);
  options.window = flags.loss_scale_window.value_or(options.window);
  options.hysteresis = flags.hysteresis.value_or(options.hysteresis);
  return options;
}

void CheckLossScales(const RunFlags& flags, Diagnostics* violations) {
  const LossScaleOptions options = LossScaleOf(flags);
  if (options.fixed.has_value() || options.initial >= options.min) return;
  violations->Add({"B9",
                   absl::StrCat("the first loss scale ", JsonNumber(options.initial),
                                " is below the least, ", JsonNumber(options.min)),
                   absl::StrCat("--initial-loss-scale ", JsonNumber(options.min))});
}

int64_t DecaySteps(const RunFlags& flags) {
  return flags.lr_decay_steps.value_or(flags.steps.value_or(1));
}

void CheckRates(const RunFlags& flags, Diagnostics* violations) {
  const double lr = flags.lr.value_or(kDefaultLr);
  const auto above = [&](const char* name, const absl::optional<double>& rate) {
    if (rate.value_or(0) <= lr) return;
    violations->Add({"B8",
                     absl::StrCat(name, " ", JsonNumber(*rate), " is above --lr ", JsonNumber(lr)),
                     absl::StrCat(name, " ", JsonNumber(lr))});
  };
  above("--min-lr", flags.min_lr);
  above("--lr-warmup-init", flags.lr_warmup_init);
  const int64_t decay = DecaySteps(flags);
  if (flags.lr_warmup_steps.value_or(0) >= decay) {
    violations->Add({"B8",
                     absl::StrCat("--lr-warmup-steps ", *flags.lr_warmup_steps,
                                  " is not below the ", decay, " steps of the decay"),
                     absl::StrCat("--lr-warmup-steps ", decay - 1)});
  }
  if (flags.lr_wsd_decay_steps.value_or(1) > decay) {
    violations->Add({"B8",
                     absl::StrCat("--lr-wsd-decay-steps ", *flags.lr_wsd_decay_steps,
                                  " is above the ", decay, " steps of the decay"),
                     absl::StrCat("--lr-wsd-decay-steps ", decay)});
  }
}

// The values of --resume beside a step.
constexpr char kResumeLatest[] = "latest";
constexpr char kResumeNone[] = "none";

absl::optional<int64_t> StepToResume(const RunFlags& flags) {
  int64_t step = 0;
  if (!flags.resume || !absl::SimpleAtoi(*flags.resume, &step) || step < 0) return absl::nullopt;
  return step;
}

void CheckCheckpointUsage(const RunFlags& flags, Diagnostics* violations) {
  const auto needs_save = [&](const char* flag, bool given) {
    if (!given || flags.save) return;
    violations->Add({"F6", absl::StrCat(flag, " is given, and nowhere to save"), "--save DIR"});
  };
  needs_save("--save-interval", flags.save_interval.has_value());
  needs_save("--save-seconds", flags.save_seconds.has_value());
  needs_save("--keep", flags.keep.has_value());
  needs_save("--wait-for-saves", flags.wait_for_saves);
  needs_save("--copy-for-saves", flags.copy_for_saves);
  if (flags.wait_for_saves && flags.copy_for_saves) {
    violations->Add({"F7", "--wait-for-saves and --copy-for-saves are both given", "one of both"});
  }
  if (flags.init && flags.load) {
    violations->Add({"F7", "--init and --load are both given", "one of both"});
  }
  if (flags.init_adapter && !flags.init) {
    violations->Add({"F7", "--init-adapter is given without the model that it stands beside",
                     "--init DIR too"});
  }
  if (!flags.resume) return;
  const std::string& word = *flags.resume;
  if (word != kResumeLatest && word != kResumeNone && !StepToResume(flags)) {
    violations->Add({"F4",
                     absl::StrCat("--resume ", word, " is neither a word it knows nor a step"),
                     "latest, none, or a number of steps"});
  }
  if (word != kResumeNone && !flags.save && !flags.load) {
    violations->Add({"F6",
                     absl::StrCat("--resume ", word, " is given, and no folder of checkpoints"),
                     "--save DIR or --load DIR"});
  }
}

// `NAME=FILE.npy`, `NAME=FILE.safetensors` or `NAME=FILE.safetensors:TENSOR`; none for all else.
absl::optional<InputFile> ParseInput(absl::string_view text) {
  constexpr absl::string_view kNpy = ".npy";
  constexpr absl::string_view kSafetensors = ".safetensors";
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) return absl::nullopt;
  InputFile file;
  file.input = std::string(text.substr(0, equals));
  const absl::string_view place = text.substr(equals + 1);
  const size_t colon = place.rfind(absl::StrCat(kSafetensors, ":"));
  if (absl::EndsWith(place, kNpy) || absl::EndsWith(place, kSafetensors)) {
    file.place = {std::string(place), file.input};
  } else if (colon != absl::string_view::npos) {
    const size_t end = colon + kSafetensors.size();
    file.place = {std::string(place.substr(0, end)), std::string(place.substr(end + 1))};
  } else {
    return absl::nullopt;
  }
  return file;
}

void CheckInputs(const char* flag, const std::vector<std::string>& texts, Diagnostics* violations) {
  for (const std::string& text : texts) {
    if (ParseInput(text).has_value()) continue;
    violations->Add({"F5", absl::StrCat(flag, " ", text, " names no input and file of a tensor"),
                     "NAME=FILE.npy, NAME=FILE.safetensors or NAME=FILE.safetensors:TENSOR"});
  }
}

// Those that name one.
std::vector<InputFile> FilesOf(const std::vector<std::string>& texts) {
  std::vector<InputFile> files;
  for (const std::string& text : texts) {
    if (auto file = ParseInput(text)) files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace

Diagnostics CheckRunFlags(const RunFlags& flags) {
  Diagnostics violations;
  CheckRates(flags, &violations);
  CheckLossScales(flags, &violations);
  CheckEvaluation(flags, &violations);
  return violations;
}

bool LibraryAllReduces(const RunFlags& flags) {
  return flags.allreduce.value_or(kAllReduceOrdered) == kAllReduceByMpi;
}

Diagnostics CheckLauncher(const RunFlags& flags, const std::string& launcher, int64_t processes) {
  Diagnostics violations;
  if (flags.nproc && processes > 1) {
    violations.Add({"F7",
                    absl::StrCat("--nproc starts processes of its own, and ", launcher,
                                 " has started ", processes, " already"),
                    "one of both"});
  }
  if (LibraryAllReduces(flags) && launcher.empty() && !flags.check) {
    violations.Add({"F8", "--allreduce mpi is given, and no MPI launcher has started this process",
                    "--allreduce ordered, or mpirun -n N or srun --mpi=pmix before the command"});
  }
  return violations;
}

Diagnostics CheckLossScaleFlags(const RunFlags& flags, const Plan& plan) {
  Diagnostics violations;
  if (ScalesLoss(plan) && flags.check_finite.value_or("loss") != "loss") {
    violations.Add({"L2",
                    absl::StrCat("--check-finite ", *flags.check_finite,
                                 " would end at the first overflow, and the plan leaves such steps "
                                 "out"),
                    "--check-finite loss"});
  }
  std::vector<std::string> given = DynamicScaleFlags(flags);
  if (flags.loss_scale) given.insert(given.begin(), "--loss-scale");
  if (ScalesLoss(plan)) return violations;
  for (const std::string& flag : given) {
    violations.Add({"L1", absl::StrCat(flag, " is given, and the plan scales no loss"),
                    "a plan made with --fp16"});
  }
  return violations;
}

Diagnostics CheckOptimizerFlags(const RunFlags& flags, const Plan& plan) {
  std::vector<std::string> taken = {"--lr", "--weight-decay", "--clip-grad"};
  for (const HyperParameter& parameter : HyperParameters()) {
    if (TakesScalar(plan, parameter.scalar)) taken.push_back(absl::StrCat("--", parameter.flag));
  }
  Diagnostics violations;
  for (size_t i = 0; i < flags.hyper.size(); ++i) {
    const HyperParameter& parameter = HyperParameters()[i];
    if (!flags.hyper[i] || TakesScalar(plan, parameter.scalar)) continue;
    violations.Add(
        {"O1",
         absl::StrCat("--", parameter.flag, " is given, and no optimizer of the plan takes it"),
         absl::StrJoin(taken, ", ")});
  }
  return violations;
}

void CheckDeviceUsage(const RunFlags& flags, Diagnostics* violations) {
  if (flags.device == "cuda") {
    if (LibraryAllReduces(flags)) {
      violations->Add({"F7",
                       "--allreduce mpi adds in this machine's memory, and the ranks are on GPUs",
                       "--allreduce ordered, or --device cpu"});
    }
    return;
  }
  const auto needs_gpu = [&](const char* flag, bool given) {
    if (!given) return;
    violations->Add(
        {"F7", absl::StrCat(flag, " is given, and no GPU is asked for"), "--device cuda"});
  };
  needs_gpu("--gpus", flags.gpus.has_value());
  needs_gpu("--no-cuda-graphs", flags.no_cuda_graphs);
  needs_gpu("--tf32", flags.tf32);
  needs_gpu("--check-kernels", flags.check_kernels);
}

Diagnostics CheckRunUsage(const RunFlags& flags, const ParsedFlags& parsed) {
  Diagnostics violations;
  const auto missing = [&parsed](absl::string_view flag) {
    return std::count(parsed.bad_flags.begin(), parsed.bad_flags.end(), flag) == 0;
  };
  if (flags.rank && !flags.check) {
    violations.Add({"F6", "--rank is given, and every rank runs", "--rank N --check"});
  }
  const bool has_data =
      flags.eval_only || !flags.data.train.empty() || flags.data.mock || !flags.inputs.empty();
  if (!flags.check && !has_data && missing("--data")) {
    violations.Add({"F6", "no data to train on", "--data FILE, --mock-data or --inputs NAME=FILE"});
  }
  violations.Append(
      CheckDataFlags(flags.data, !flags.inputs.empty() || !flags.eval_inputs.empty()));
  CheckCheckpointUsage(flags, &violations);
  CheckInputs("--inputs", flags.inputs, &violations);
  CheckInputs("--eval-inputs", flags.eval_inputs, &violations);
  if (!flags.check && !flags.eval_only && !flags.steps && missing("--steps")) {
    violations.Add({"F6", "the number of steps is missing", "--steps N"});
  }
  const auto needs_trace = [&](const char* flag, bool given) {
    if (!given || flags.trace || !missing("--trace")) return;
    violations.Add(
        {"F6", absl::StrCat(flag, " is given, and no timeline is asked for"), "--trace FILE"});
  };
  needs_trace("--trace-steps", flags.trace_steps.has_value());
  needs_trace("--trace-from", flags.trace_from.has_value());
  if (flags.stop_on_nonfinite && flags.no_stop_on_nonfinite) {
    violations.Add(
        {"F7", "--stop-on-nonfinite and --no-stop-on-nonfinite are both given", "one of both"});
  }
  if (const auto dynamic = DynamicScaleFlags(flags); flags.loss_scale && !dynamic.empty()) {
    violations.Add({"F7",
                    absl::StrCat("--loss-scale, which stays as it is, contradicts ",
                                 absl::StrJoin(dynamic, ", ")),
                    "one of both"});
  }
  CheckDeviceUsage(flags, &violations);
  std::vector<NamedPath> inputs;
  for (const std::string& plan : flags.plans) inputs.push_back({"PLAN", plan});
  for (const std::string& file : TrainFilesOf(flags.data)) inputs.push_back({"--data", file});
  for (const std::string& file : EvalFilesOf(flags.data)) inputs.push_back({"--eval-data", file});
  for (const InputFile& file : FilesOf(flags.inputs)) {
    inputs.push_back({"--inputs", file.place.path});
  }
  for (const InputFile& file : FilesOf(flags.eval_inputs)) {
    inputs.push_back({"--eval-inputs", file.place.path});
  }
  std::vector<NamedPath> results = ResultsOf(flags);
  results.insert(results.begin(), {"the steps", "-"});
  violations.Append(CheckPaths(inputs, results));
  return violations;
}

std::vector<NamedPath> ResultsOf(const RunFlags& flags) {
  std::vector<NamedPath> results;
  if (flags.metrics) results.push_back({"--metrics", *flags.metrics});
  if (flags.open_metrics) results.push_back({"--openmetrics", *flags.open_metrics});
  if (flags.trace) results.push_back({"--trace", *flags.trace});
  if (flags.dump_grads) results.push_back({"--dump-grads", *flags.dump_grads});
  if (flags.dump_params) results.push_back({"--dump-params", *flags.dump_params});
  return results;
}

TrainOptions TrainOptionsOf(const RunFlags& flags, const Plan& plan) {
  const auto samples = [&plan](int64_t steps) {
    return SaturatingMultiply(steps, plan.global_batch_size);
  };
  TrainOptions options;
  options.workers = static_cast<int>(flags.workers.value_or(0));
  options.seed = static_cast<uint64_t>(flags.seed.value_or(kDefaultSeed));
  options.trace_room = flags.trace.has_value() ? kTraceRoom : 0;
  options.trace_steps = flags.trace_steps.value_or(kDefaultTraceSteps);
  const int64_t last_steps = flags.steps.value_or(1) - options.trace_steps + 1;
  options.trace_from = flags.trace_from.value_or(std::min(kDefaultTraceFrom, last_steps));
  options.inputs = FilesOf(flags.inputs);
  if (flags.eval_only && options.inputs.empty()) options.inputs = FilesOf(flags.eval_inputs);
  options.lr.style = *ParseLrDecayStyle(flags.lr_decay_style.value_or("linear"));
  options.lr.init_lr = flags.lr_warmup_init.value_or(0);
  options.lr.max_lr = flags.lr.value_or(kDefaultLr);
  options.lr.min_lr = flags.min_lr.value_or(0);
  options.lr.warmup_samples = samples(flags.lr_warmup_steps.value_or(0));
  options.lr.decay_samples = samples(DecaySteps(flags));
  options.lr.wsd_style = *ParseWsdDecayStyle(flags.lr_wsd_decay_style.value_or("exponential"));
  options.lr.wsd_decay_samples =
      samples(flags.lr_wsd_decay_steps.value_or((DecaySteps(flags) + 9) / 10));
  options.weight_decay.start = flags.weight_decay.value_or(kDefaultWeightDecay);
  options.weight_decay.end = options.weight_decay.start;
  for (size_t i = 0; i < flags.hyper.size(); ++i) {
    if (flags.hyper[i]) options.hyper[HyperParameters()[i].scalar] = *flags.hyper[i];
  }
  options.loss_scale = LossScaleOf(flags);
  const std::string finite = flags.check_finite.value_or("loss");
  options.check_finite = finite == "all"     ? FiniteCheck::kAll
                         : finite == "grads" ? FiniteCheck::kGradients
                                             : FiniteCheck::kLoss;
  options.clip_grad = flags.clip_grad.value_or(options.clip_grad);
  options.eval_inputs = FilesOf(flags.eval_inputs);
  options.eval_tail_samples = flags.eval_tail_samples.value_or(0);
  const bool hold_back = flags.eval_interval && flags.data.eval.empty() &&
                         flags.eval_inputs.empty() && !flags.eval_tail_samples &&
                         !SplitsOffEvaluation(flags.data);
  if (hold_back) options.eval_tail_samples = samples(flags.eval_steps.value_or(1));
  options.eval_steps = flags.eval_steps.value_or(0);
  return options;
}

TrainingRunOptions RunOptionsOf(const RunFlags& flags) {
  TrainingRunOptions options;
  options.steps = flags.steps.value_or(0);
  options.eval_only = flags.eval_only;
  options.by_document = flags.by_document;
  options.eval_interval = flags.eval_interval.value_or(0);
  options.exit_interval = flags.exit_interval.value_or(0);
  options.exit_seconds = flags.exit_seconds.value_or(0);
  options.reports.metrics_path = flags.metrics.value_or("");
  options.reports.tensorboard_dir = flags.tensorboard.value_or("");
  options.reports.open_metrics_path = flags.open_metrics.value_or("");
  options.stop_on_nonfinite = !flags.no_stop_on_nonfinite;
  options.gradients_path = flags.dump_grads.value_or("");
  options.parameters_path = flags.dump_params.value_or("");
  CheckpointOptions& checkpoints = options.checkpoints;
  checkpoints.save_dir = flags.save.value_or("");
  checkpoints.interval = flags.save_interval.value_or(0);
  checkpoints.seconds = flags.save_seconds.value_or(0);
  checkpoints.keep = flags.keep.value_or(0);
  checkpoints.in_background = !flags.wait_for_saves;
  // Of the last save and that of a signal there is none.
  checkpoints.copies = flags.copy_for_saves && (flags.save_interval || flags.save_seconds);
  checkpoints.load_dir = flags.load.value_or("");
  checkpoints.resume = flags.resume.value_or(kResumeLatest) != kResumeNone;
  checkpoints.at_step = StepToResume(flags);
  checkpoints.tell_changes = !flags.eval_only;  // they are of training
  checkpoints.version = std::string(absl::StripSuffix(VersionText(), "\n"));
  return options;
}

}  // namespace mgc
