// Trains the model of a plan: batches, rates and evaluation around an executor.
//
// Everything a user sees is defined by seed, data and options, not by the plan: a step takes the
// samples behind those that were taken before it, a global batch of them, at the rate that their
// number gives, and reports the mean loss per token before the update.

#ifndef MGC_RUNTIME_TRAIN_TRAINER_H_
#define MGC_RUNTIME_TRAIN_TRAINER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "runtime/data/batch_reader.h"
#include "runtime/data/data.h"
#include "runtime/data/input_files.h"
#include "runtime/data/sample_set.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/executor.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/train/hyper_parameters.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/lr_schedule.h"

namespace mgc {

// What a step computes, of all ranks together; all 0: nobody has counted.
struct StepWork {
  double flops = 0;
  double device_seconds = 0;  // that as much takes at the peak rates of the plan's devices
};

// Steps of another size from some sample on.
struct StepsFrom {
  int64_t sample = 0;
  const Plan* plan = nullptr;  // as Executor::ChangeSteps takes it; outlives the trainer
  StepWork work;               // of one of its steps
};

struct TrainOptions {
  KernelList kernels;
  int workers = 0;  // 0: one for each processor this process may use
  SimdLevel simd_level = BestSimdLevel();
  uint64_t seed = 1;                                          // of initialization and dropout
  int64_t trace_room = 0;                                     // records kept per rank and queue
  int64_t trace_steps = std::numeric_limits<int64_t>::max();  // as in ExecutorOptions, but
  int64_t trace_from = 1;                                     // from this step on
  // As in ExecutorOptions; every process has all of the data.
  DeviceFactory device;
  absl::optional<ProcessPlace> process;
  absl::Span<RankProgress> progress;
  StepMachine::ProbeFn probe;
  FiniteCheck check_finite = FiniteCheck::kLoss;
  StepWork work;  // of the plan, for the records
  // By sample, of which the first is 0 and no two are alike; empty: the plan's steps throughout. An
  // evaluation is the plan's whatever the steps are.
  std::vector<StepsFrom> steps;

  // The text, or neither where `inputs` feed the whole model.
  std::string data_path;
  absl::optional<TokenDataset> data;  // instead of data_path
  std::vector<InputFile> inputs;      // tensors, which are taken before the text

  LrSchedule lr;  // in samples
  WeightDecaySchedule weight_decay;
  HyperValues hyper;            // of the plan's optimizers; others are left aside
  LossScaleOptions loss_scale;  // of plans that scale their loss
  double clip_grad = 1.0;       // largest norm of the gradient; 0 or less: no clipping

  // Evaluation data: a text and tensors of its own, or the last samples of the training data, which
  // are then not trained on. Neither: no evaluation.
  std::string eval_data_path;
  absl::optional<TokenDataset> eval_data;  // instead of eval_data_path
  std::vector<InputFile> eval_inputs;
  int64_t eval_tail_samples = 0;
  int64_t eval_steps = 0;  // global batches an evaluation takes at most; 0: all of the data
};

// So many first steps of a trainer are warm-up.
inline constexpr int64_t kWarmUpSteps = 2;

// What a trainer has taken from a checkpoint.
struct Resumed {
  std::vector<std::string> changes;  // of options and data, a line each
  int64_t bytes = 0;                 // of tensors, read by this process
};

class Trainer {
 public:
  // `plan` must outlive the trainer. All wrong options at once are InvalidArgument; further the
  // errors of Executor::Create, of opening the data and of reading the inputs
  // (runtime/data/input_files.h).
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const Plan& plan, TrainOptions options);

  // Steps of the plan's size after which the samples taken are too many to be counted; of a new
  // trainer at least 2^23.
  int64_t most_steps() const;
  // Runs the next step. OutOfRange when it would be more than most_steps; errors of reading the
  // data, InvalidArgument among them for a token outside the model's vocabulary.
  absl::StatusOr<StepRecord> Step();
  // Runs the model on the evaluation data, without dropout; changes no parameter. Of a model
  // without weights, which cannot leave samples out, on full batches only. FailedPrecondition
  // without evaluation data or program.
  absl::StatusOr<EvalRecord> Evaluate();
  // The same on all of a text of its own. FailedPrecondition of a model that cannot leave out what
  // fills up its batches.
  absl::StatusOr<EvalRecord> EvaluateText(const TokenDataset& text);
  // The text of the evaluation data; null without one.
  const TokenDataset* eval_text() const {
    return eval_samples_.has_value() ? eval_samples_->At(0, 0).data : nullptr;
  }

  // Begins to save the state behind the last step, which outlives what is begun
  // (runtime/state/checkpoint.h).
  absl::StatusOr<std::unique_ptr<PendingCheckpoint>> BeginSave(const CheckpointDir* dir,
                                                               const std::string& version) const;
  // Saves it; the folder that it is in then.
  absl::StatusOr<std::string> Save(const CheckpointDir* dir, const std::string& version) const;
  // Goes on from the checkpoint in `folder`, of this plan or another one of the same model. After
  // an error the state is that of none.
  absl::StatusOr<Resumed> Resume(const std::string& folder);

  int64_t steps_done() const { return steps_done_; }
  int64_t samples_done() const { return samples_done_; }
  // How many samples the next step takes.
  int64_t next_batch() const { return StepsAt(samples_done_).plan->global_batch_size; }
  bool can_evaluate() const { return eval_samples_.has_value() && evaluates(); }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }

  // Write logical tensors (runtime/state/tensor_file.h): the parameters as they are; the gradients
  // of the last step, divided by its token count, before clipping.
  absl::Status WriteParameters(const std::string& path) const;
  absl::Status WriteGradients(const std::string& path) const;

 private:
  Trainer(std::unique_ptr<Executor> executor, SampleSet samples,
          absl::optional<SampleSet> eval_samples, TrainOptions options);

  // Whether the plan has an evaluation, or trains nothing.
  bool evaluates() const;
  // The step that takes the samples behind `samples`.
  StepsFrom StepsAt(int64_t samples) const;
  // The step that takes the next samples, with its text, which is read while the step before runs.
  StepData NextStep();
  // Batch number `batch` of the evaluation data.
  StepData EvalBatch(int64_t batch) const;
  // On at most so many batches of a set. `reads_ahead`: it is the evaluation data, of which the
  // next batch is read while one is computed.
  absl::StatusOr<EvalRecord> EvaluateOn(const SampleSet& set, int64_t most_steps, bool reads_ahead);

  void AddRates(const StepWork& work, StepRecord* record) const;

  std::unique_ptr<Executor> executor_;
  SampleSet samples_;
  absl::optional<SampleSet> eval_samples_;
  TrainOptions options_;
  BatchReader reader_;  // of both sets; of a step of another size it reads whole batches too
  int64_t steps_done_ = 0;
  int64_t samples_done_ = 0;
  int64_t steps_here_ = 0;  // that this trainer has run
};

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_TRAINER_H_
