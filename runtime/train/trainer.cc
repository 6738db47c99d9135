#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "runtime/state/carried.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/parameters.h"
#include "runtime/state/tensor_file.h"
#include "runtime/train/option_texts.h"

namespace mgc {
namespace {

constexpr double kNsPerMs = 1e6;

bool HasEvalData(const TrainOptions& o) {
  return o.eval_data.has_value() || !o.eval_data_path.empty() || !o.eval_inputs.empty();
}

absl::Status CheckTrainOptions(const TrainOptions& o) {
  Diagnostics violations = CheckSchedule(o.lr);
  violations.Append(CheckSchedule(o.weight_decay));
  const auto require = [&violations](bool holds, const auto&... text) {
    if (!holds) violations.Add("", "", absl::StrCat(text...));
  };
  violations.Append(CheckHyperValues(o.hyper));
  require(std::isfinite(o.clip_grad), "the largest gradient norm must be finite, not ",
          o.clip_grad);
  violations.Append(CheckLossScale(o.loss_scale));
  require(o.steps.empty() || o.steps[0].sample == 0, "the first size of steps is not of sample 0");
  for (size_t i = 1; i < o.steps.size(); ++i) {
    require(o.steps[i - 1].sample < o.steps[i].sample, "steps change their size at sample ",
            o.steps[i].sample, ", not behind ", o.steps[i - 1].sample);
  }
  require(o.eval_steps >= 0, "evaluation cannot take ", o.eval_steps, " steps");
  require(o.eval_tail_samples >= 0, "cannot hold back ", o.eval_tail_samples, " samples");
  require(o.eval_tail_samples == 0 || !HasEvalData(o),
          "evaluation takes files of its own or a tail of the training data, not both");
  return violations.ToStatus();
}

// Reports that are loss terms behind the first.
std::set<std::string> OtherLosses(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanClass& c : plan.classes) {
    for (const NamedAddress& report : c.reports) names.insert(report.name);
  }
  for (const char* name : {kLossReport, kTokenReport, kGradNormReport, kGradFactorReport})
    names.erase(name);
  if (ScalesLoss(plan)) {
    for (const char* name : {kLossScaleReport, kFiniteReport}) names.erase(name);
  }
  return names;
}

// Where data comes from, and for what.
struct DataFiles {
  const absl::optional<TokenDataset>& text;
  const std::string& text_path;  // without `text`
  const std::vector<InputFile>& inputs;
  int64_t least_samples;  // of tensors
};

// The text; none where tensors feed the model and no text is given.
absl::StatusOr<absl::optional<TokenDataset>> TextOf(const DataFiles& files, int64_t seq_length) {
  if (files.text.has_value()) {
    if (files.text->seq_length() == seq_length) return files.text;
    return absl::InvalidArgumentError(absl::StrCat("the data is cut into samples of ",
                                                   files.text->seq_length(),
                                                   " tokens, the plan's have ", seq_length));
  }
  if (files.text_path.empty() && !files.inputs.empty()) return absl::optional<TokenDataset>();
  MGC_ASSIGN_OR_RETURN(TokenDataset text, TokenDataset::Open(files.text_path, seq_length));
  return absl::optional<TokenDataset>(std::move(text));
}

absl::StatusOr<SampleSet> ReadSamples(const Plan& plan, const DataFiles& files) {
  MGC_ASSIGN_OR_RETURN(absl::optional<TokenDataset> text, TextOf(files, plan.seq_length));
  MGC_ASSIGN_OR_RETURN(
      InputTensors tensors,
      ReadInputs(plan, files.inputs, text.has_value() ? &*text : nullptr, files.least_samples));
  return SampleSet(std::move(text), std::move(tensors));
}

// A model that cannot leave samples out is evaluated on full batches, of which there must be one.
absl::Status CheckEvaluated(const Plan& plan, const SampleSet& samples) {
  if (SamplesToEvaluate(plan, samples) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "evaluation has ", samples.samples(), " samples; its losses do not all depend on an input `",
      kWeightsInput, "`, which could leave samples out, so that it takes full batches of ",
      plan.global_batch_size));
}

// How many of the plan's devices compute here: ranks share the machine's cores, of which the
// workers of all processes, as many in each, are some; or the plan gives every rank a device of its
// own, and where there are fewer workers ranks share them.
double DevicesHere(const Executor& executor) {
  const double workers = executor.num_workers() * executor.team().size();
  if (executor.plan().machine.cores > 0) return workers;
  return std::min(static_cast<double>(executor.plan().mesh.world_size()), workers);
}

// What is predicted for them of the steps that run; 0 if nothing is.
double PredictedMs(const Executor& executor) {
  const Plan& plan = executor.steps();
  const int64_t devices = plan.machine.cores > 0 ? plan.machine.cores : plan.mesh.world_size();
  return static_cast<double>(plan.predicted_step_ns) / kNsPerMs * static_cast<double>(devices) /
         DevicesHere(executor);
}

// The rows of a batch that ranks here take from a text; none where there is no text.
std::vector<int64_t> TextRowsHere(const Executor& executor, const SampleSet& samples,
                                  const absl::optional<SampleSet>& eval_samples) {
  const bool has_text = samples.At(0, 0).data != nullptr ||
                        (eval_samples.has_value() && eval_samples->At(0, 0).data != nullptr);
  if (!has_text) return {};
  return TextRowsOf(executor.plan(), executor.local().begin, executor.local().end);
}

}  // namespace

Trainer::Trainer(std::unique_ptr<Executor> executor, SampleSet samples,
                 absl::optional<SampleSet> eval_samples, TrainOptions options)
    : executor_(std::move(executor)),
      samples_(std::move(samples)),
      eval_samples_(std::move(eval_samples)),
      options_(std::move(options)),
      reader_(TextRowsHere(*executor_, samples_, eval_samples_),
              executor_->plan().global_batch_size, executor_->plan().seq_length) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const Plan& plan, TrainOptions options) {
  MGC_RETURN_IF_ERROR(CheckTrainOptions(options));
  MGC_RETURN_IF_ERROR(CheckParameters(plan));
  MGC_ASSIGN_OR_RETURN(
      SampleSet samples,
      ReadSamples(plan, {options.data, options.data_path, options.inputs, plan.global_batch_size}));
  absl::optional<SampleSet> eval_samples;
  if (options.eval_tail_samples > 0) {
    MGC_ASSIGN_OR_RETURN(auto parts, samples.HoldBackTail(options.eval_tail_samples));
    samples = std::move(parts.first);
    eval_samples = std::move(parts.second);
  } else if (HasEvalData(options)) {
    MGC_ASSIGN_OR_RETURN(eval_samples,
                         ReadSamples(plan, {options.eval_data, options.eval_data_path,
                                            options.eval_inputs, /*least_samples=*/1}));
  }
  if (eval_samples.has_value()) MGC_RETURN_IF_ERROR(CheckEvaluated(plan, *eval_samples));
  ExecutorOptions executor_options;
  executor_options.kernels = options.kernels;
  executor_options.workers = options.workers;
  executor_options.simd_level = options.simd_level;
  executor_options.seed = options.seed;
  executor_options.trace_room = options.trace_room;
  executor_options.trace_steps = options.trace_steps;
  executor_options.device = options.device;
  executor_options.process = options.process;
  executor_options.progress = options.progress;
  executor_options.probe = options.probe;
  executor_options.check_finite = options.check_finite;
  for (const StepsFrom& steps : options.steps) executor_options.others.push_back(steps.plan);
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                       Executor::Create(plan, executor_options));
  InitializeParameters(options.seed, *executor);
  StartLossScale(options.loss_scale, *executor);
  return std::unique_ptr<Trainer>(new Trainer(std::move(executor), std::move(samples),
                                              std::move(eval_samples), std::move(options)));
}

int64_t Trainer::most_steps() const {
  const int64_t left = std::numeric_limits<int64_t>::max() - samples_done_;
  return steps_done_ + left / executor_->plan().global_batch_size;
}

StepsFrom Trainer::StepsAt(int64_t samples) const {
  StepsFrom at = {0, &executor_->plan(), options_.work};
  for (const StepsFrom& steps : options_.steps) {
    if (steps.sample <= samples) at = steps;
  }
  return at;
}

StepData Trainer::NextStep() {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const int64_t batch = executor_->steps().global_batch_size;
  StepData step = samples_.At(samples_done_, kEnd);
  step.batch = reader_.Take(step);
  if (samples_done_ <= kEnd - 2 * batch) reader_.Announce(samples_.At(samples_done_ + batch, kEnd));
  if (can_evaluate()) reader_.Announce(EvalBatch(0));
  return step;
}

bool Trainer::evaluates() const { return executor_->has_eval() || !HasBackward(executor_->plan()); }

StepData Trainer::EvalBatch(int64_t batch) const {
  return eval_samples_->At(batch * executor_->plan().global_batch_size,
                           SamplesToEvaluate(executor_->plan(), *eval_samples_));
}

absl::StatusOr<StepRecord> Trainer::Step() {
  const StepsFrom steps = StepsAt(samples_done_);
  const Plan& plan = *steps.plan;
  if (steps_done_ >= most_steps()) {
    return absl::OutOfRangeError(absl::StrCat("step ", steps_done_ + 1, " of ",
                                              plan.global_batch_size,
                                              " samples would be beyond what can be counted"));
  }
  executor_->ChangeSteps(plan);
  const int64_t samples = samples_done_;
  const double t = static_cast<double>(steps_done_ + 1);
  StepRecord record;
  record.step = steps_done_ + 1;
  record.lr = LearningRate(options_.lr, samples);
  std::vector<NamedScalar> scalars = {
      {kRateScalar, record.lr},
      {kDecayScalar, WeightDecay(options_.weight_decay, samples)},
      {kMaxNormScalar,
       options_.clip_grad > 0 ? options_.clip_grad : std::numeric_limits<double>::infinity()}};
  const HyperValues numbers = NumbersOfStep(options_.hyper, t);
  for (const auto& [name, value] : numbers) scalars.push_back({name.c_str(), value});
  for (const NamedScalar& scalar : ScalarsOf(options_.loss_scale)) scalars.push_back(scalar);
  StepInput input;
  input.traced = record.step >= options_.trace_from;
  input.scalars = scalars;
  const int64_t begin = NowNs();
  input.data = NextStep();
  record.data_wait_ms = static_cast<double>(NowNs() - begin) / kNsPerMs;
  MGC_RETURN_IF_ERROR(executor_->Run(input));
  record.ms = static_cast<double>(NowNs() - begin) / kNsPerMs;
  MGC_ASSIGN_OR_RETURN(record.loss, executor_->Report(kLossReport, false));
  MGC_ASSIGN_OR_RETURN(record.grad_norm, executor_->Report(kGradNormReport, false));
  MGC_ASSIGN_OR_RETURN(const double counted, executor_->Report(kTokenReport, false));
  if (ScalesLoss(plan)) {
    MGC_ASSIGN_OR_RETURN(record.loss_scale, executor_->Report(kLossScaleReport, false));
    MGC_ASSIGN_OR_RETURN(const double finite, executor_->Report(kFiniteReport, false));
    record.left_out = finite == 0;
  }
  for (const std::string& name : OtherLosses(plan)) {
    MGC_ASSIGN_OR_RETURN(record.other_losses[name], executor_->Report(name, false));
  }
  record.tokens = counted;
  AddRates(steps.work, &record);
  ++steps_here_;
  ++steps_done_;
  samples_done_ += plan.global_batch_size;
  return record;
}

void Trainer::AddRates(const StepWork& work, StepRecord* record) const {
  const double seconds = record->ms / 1e3;
  record->predicted_ms = PredictedMs(*executor_);
  record->warm_up = steps_here_ < kWarmUpSteps;
  record->tokens_per_second = record->tokens / seconds;
  if (work.flops > 0) record->flops_per_second = work.flops / seconds;
  if (work.device_seconds > 0) {
    record->peak_share = work.device_seconds / (seconds * DevicesHere(*executor_));
  }
  record->peak_bytes = executor_->MeasuredPeak();
}

absl::StatusOr<EvalRecord> Trainer::Evaluate() {
  if (!can_evaluate()) {
    return absl::FailedPreconditionError(eval_samples_.has_value()
                                             ? "the plan has no evaluation program"
                                             : "there is no evaluation data");
  }
  const int64_t most =
      options_.eval_steps > 0 ? options_.eval_steps : std::numeric_limits<int64_t>::max();
  return EvaluateOn(*eval_samples_, most, /*reads_ahead=*/true);
}

absl::StatusOr<EvalRecord> Trainer::EvaluateText(const TokenDataset& text) {
  const SampleSet set(text, {});
  if (!evaluates() || !LeavesOut(executor_->plan().model)) {
    return absl::FailedPreconditionError(
        absl::StrCat("texts that fill no batch cannot be evaluated by themselves: the plan has no "
                     "evaluation, or "
                     "losses that do not depend on an input `",
                     kWeightsInput, "`"));
  }
  return EvaluateOn(set, std::numeric_limits<int64_t>::max(), /*reads_ahead=*/false);
}

absl::StatusOr<EvalRecord> Trainer::EvaluateOn(const SampleSet& set, int64_t most_steps,
                                               bool reads_ahead) {
  executor_->ChangeSteps(executor_->plan());
  const int64_t batch = executor_->plan().global_batch_size;
  const int64_t samples = SamplesToEvaluate(executor_->plan(), set);
  const int64_t steps = std::min((samples + batch - 1) / batch, most_steps);
  EvalRecord result;
  result.step = steps_done_;
  double sum = 0;
  double tokens = 0;
  for (int64_t step = 0; step < steps; ++step) {
    StepInput input;
    input.eval = executor_->has_eval();  // else its steps are evaluations
    input.traced = steps_done_ >= options_.trace_from;
    input.data = set.At(step * batch, samples);
    if (reads_ahead) {
      input.data.batch = reader_.Take(input.data);
      if (step + 1 < steps) reader_.Announce(EvalBatch(step + 1));
    }
    MGC_RETURN_IF_ERROR(executor_->Run(input));
    MGC_ASSIGN_OR_RETURN(const double loss, executor_->Report(kLossReport, input.eval));
    MGC_ASSIGN_OR_RETURN(const double counted, executor_->Report(kTokenReport, input.eval));
    sum += loss * counted;
    tokens += counted;
  }
  result.loss = sum / tokens;
  result.samples = std::min(steps * batch, samples);
  result.tokens = std::llround(tokens);
  return result;
}

absl::StatusOr<std::unique_ptr<PendingCheckpoint>> Trainer::BeginSave(
    const CheckpointDir* dir, const std::string& version) const {
  TrainingState state;
  state.step = steps_done_;
  state.samples = samples_done_;
  state.options = OptionTexts(options_, executor_->plan());
  MGC_ASSIGN_OR_RETURN(state.data, samples_.Identity());
  state.version = version;
  return PendingCheckpoint::Begin(*executor_, dir, std::move(state));
}

absl::StatusOr<std::string> Trainer::Save(const CheckpointDir* dir,
                                          const std::string& version) const {
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<PendingCheckpoint> pending, BeginSave(dir, version));
  pending->Write([this] { executor_->team().ComesOn(); });
  return pending->End();
}

absl::StatusOr<Resumed> Trainer::Resume(const std::string& folder) {
  MGC_ASSIGN_OR_RETURN(const LoadedState loaded, LoadCheckpoint(folder, *executor_));
  const TrainingState& state = loaded.state;
  // A scale that is to stay as it is does not go on from another one.
  if (!options_.loss_scale.fixed.has_value()) {
    PutCarried({state.carried.begin(), state.carried.end()}, *executor_);
  }
  steps_done_ = state.step;
  samples_done_ = state.samples;
  Resumed resumed;
  resumed.bytes = loaded.bytes;
  if (state.step == 0) return resumed;  // nothing was trained under other options or data
  resumed.changes = Changes("option", state.options, OptionTexts(options_, executor_->plan()));
  MGC_ASSIGN_OR_RETURN(const NamedTexts data, samples_.Identity());
  for (std::string& change : Changes("data", state.data, data)) {
    resumed.changes.push_back(std::move(change));
  }
  return resumed;
}

absl::Status Trainer::WriteParameters(const std::string& path) const {
  return WriteTensors(*executor_, TensorRole::kParam, path);
}

absl::Status Trainer::WriteGradients(const std::string& path) const {
  return WriteTensors(*executor_, TensorRole::kMeanGradient, path);
}

}  // namespace mgc
