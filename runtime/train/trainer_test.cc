#include "runtime/train/trainer.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/token_batch.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/train/training_run.h"

namespace mgc {
namespace {

// The chain's plan with a report named as a trained model's.
Plan MakePlan() {
  ChainOptions options;
  options.dp = 2;
  Plan plan = ChainPlan(options);
  plan.classes[0].reports.push_back({"grad_norm", plan.classes[0].reports[1].address});
  plan.predicted_step_ns = 2500000;
  return plan;
}

class TrainerTest : public testing::Test {
 protected:
  TrainOptions Options() const {
    TrainOptions options;
    options.kernels = kernels_;
    options.workers = 2;
    options.data = *TokenDataset::FromBytes(std::string(301, 'x'), plan_.seq_length, "data");
    options.lr.style = LrDecayStyle::kLinear;
    options.lr.max_lr = 0.01;
    options.lr.decay_samples = 64;
    return options;
  }
  std::string TempPath(const char* name) const { return testing::TempDir() + "/" + name; }

  const std::vector<KernelEntry> kernels_ = ReferenceKernels();
  const Plan plan_ = MakePlan();
};

TEST_F(TrainerTest, StepsFollowTheSchedule) {
  TrainOptions options = Options();
  options.work = {/*flops=*/1e6, /*device_seconds=*/1e-6};
  auto trainer = Trainer::Create(plan_, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  double last = std::numeric_limits<double>::infinity();
  for (int step = 1; step <= 3; ++step) {
    const auto record = (*trainer)->Step();
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->step, step);
    EXPECT_DOUBLE_EQ(record->lr, 0.01 * (1 - (step - 1) * 16 / 64.0));
    EXPECT_LT(record->loss, last);
    last = record->loss;
    EXPECT_EQ(record->grad_norm, 16.0 * plan_.seq_length);  // here: the tokens of the step
    EXPECT_EQ(record->predicted_ms, 2.5);
    EXPECT_GE(record->data_wait_ms, 0);
    EXPECT_LE(record->data_wait_ms, record->ms);
    EXPECT_EQ(record->peak_bytes, plan_.classes[0].memory.peak);
    EXPECT_NEAR(record->tokens_per_second * record->ms, 16e3 * plan_.seq_length, 1e-3);
    EXPECT_EQ(record->tokens, 16.0 * plan_.seq_length);
    EXPECT_NEAR(*record->flops_per_second * record->ms, 1e9, 1e-3);
    EXPECT_NEAR(*record->peak_share * record->ms, 1e-3 / 2, 1e-9);  // of two workers
    EXPECT_EQ(record->warm_up, step <= 2);
  }
}

// Two ranks share the 4 rows of each of 4 micro-batches.
TEST_F(TrainerTest, AProcessReadsAheadWhatItsRanksLoad) {
  EXPECT_TRUE(TextRowsOf(plan_, 0, 2).empty()) << "weights are no text";
  Plan plan = plan_;
  for (Segment& segment : plan.segments) {
    for (Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kLoad) continue;
      instr.attrs.Set("name", std::string("tokens"));
      segment.slots[static_cast<size_t>(instr.outputs[0])].type.dtype = DType::kI64;
    }
  }
  EXPECT_EQ(TextRowsOf(plan, 0, 1), (std::vector<int64_t>{0, 1, 4, 5, 8, 9, 12, 13}));
  EXPECT_EQ(TextRowsOf(plan, 1, 2), (std::vector<int64_t>{2, 3, 6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(TextRowsOf(plan, 0, 2).size(), 16);
  EXPECT_TRUE(TextRowsOf(plan, 1, 1).empty());
}

// 301 bytes hold 50 samples of 6 tokens; 11 of them are 0.7 steps of 16.
TEST_F(TrainerTest, EvaluationTakesEverySampleOnce) {
  TrainOptions options = Options();
  options.eval_tail_samples = 11;
  auto trainer = Trainer::Create(plan_, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const auto short_result = (*trainer)->Evaluate();
  ASSERT_TRUE(short_result.ok()) << short_result.status();
  EXPECT_EQ(short_result->samples, 11);
  EXPECT_EQ(short_result->tokens, 66);
  options.eval_tail_samples = 40;
  trainer = Trainer::Create(plan_, options);
  const auto result = (*trainer)->Evaluate();
  EXPECT_EQ(result->samples, 40);
  EXPECT_EQ(result->tokens, 240);
  options.eval_steps = 2;
  trainer = Trainer::Create(plan_, options);
  EXPECT_EQ((*trainer)->Evaluate()->samples, 32);
}

TEST_F(TrainerTest, RunsWriteWhatWasAskedFor) {
  TrainOptions options = Options();
  options.eval_tail_samples = 5;
  auto trainer = Trainer::Create(plan_, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  TrainingRunOptions run;
  run.steps = 4;
  run.eval_interval = 2;
  run.reports.metrics_path = TempPath("metrics.jsonl");
  run.gradients_path = TempPath("gradients.safetensors");
  run.parameters_path = TempPath("parameters.safetensors");
  std::vector<int64_t> seen;
  run.reports.on_step = [&](const StepRecord& record) { seen.push_back(record.step); };
  run.reports.on_eval = [&](const EvalRecord& record) { seen.push_back(-record.step); };
  ASSERT_TRUE(RunTraining(**trainer, run).ok());
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 2, -2, 3, 4, -4}));
  std::ifstream metrics(run.reports.metrics_path);
  int lines = 0;
  for (std::string line; std::getline(metrics, line);) {
    EXPECT_TRUE(absl::StartsWith(line, "{\"step\":")) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 6);
  for (const std::string& path : {run.gradients_path, run.parameters_path}) {
    const auto file = SafetensorsFile::Read(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Floats("layers.0.w")->size(), static_cast<size_t>(plan_.seq_length));
  }
}

// A learning rate that no float can follow: the second loss is not finite.
TEST_F(TrainerTest, EndsAtTheFirstNumberThatIsNotFinite) {
  TrainOptions options = Options();
  options.lr.max_lr = options.lr.min_lr = 1e300;
  auto trainer = Trainer::Create(plan_, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  TrainingRunOptions run;
  run.steps = 6;
  run.parameters_path = TempPath("diverged.safetensors");
  int64_t steps = 0;
  run.reports.on_step = [&](const StepRecord& record) { steps = record.step; };
  const absl::Status status = RunTraining(**trainer, run);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("of step ", steps, " is ")))
      << status;
  EXPECT_LT(steps, 6);
  EXPECT_FALSE(std::ifstream(run.parameters_path).good());

  trainer = Trainer::Create(plan_, options);
  run.stop_on_nonfinite = false;
  std::vector<std::string> notes;
  run.reports.on_note = [&](const std::string& note) { notes.push_back(note); };
  const int64_t diverged = steps;
  EXPECT_TRUE(RunTraining(**trainer, run).ok());
  EXPECT_EQ(steps, 6);
  ASSERT_EQ(notes.size(), 2);
  EXPECT_TRUE(absl::StrContains(notes[0], absl::StrCat("of step ", diverged, " is "))) << notes[0];
  EXPECT_TRUE(
      absl::EndsWith(notes[1], " of 6 steps with a loss or gradient norm that is not finite"))
      << notes[1];
}

TEST_F(TrainerTest, StopsWhereItIsAskedTo) {
  TrainingRunOptions run;
  run.steps = 6;
  run.exit_interval = 4;
  int64_t steps = 0;
  run.reports.on_step = [&](const StepRecord& record) { steps = record.step; };
  auto trainer = Trainer::Create(plan_, Options());
  EXPECT_TRUE(absl::IsCancelled(RunTraining(**trainer, run)));
  EXPECT_EQ(steps, 4);
  run.exit_interval = 0;
  run.exit_seconds = 1e-9;
  trainer = Trainer::Create(plan_, Options());
  EXPECT_TRUE(absl::IsCancelled(RunTraining(**trainer, run)));
  EXPECT_EQ(steps, 1);
  run.exit_interval = 6;  // the last step is no reason to stop
  run.exit_seconds = 1e9;
  EXPECT_TRUE(RunTraining(**trainer, run).ok());
  EXPECT_EQ(steps, 6);
}

TEST_F(TrainerTest, AllWrongOptionsAreNamedAtOnce) {
  TrainOptions options = Options();
  options.lr.max_lr = -1;
  options.hyper = {{"beta1", 1}, {"eps", 0}, {"beta3", 0.5}};
  options.clip_grad = std::nan("");
  options.eval_steps = -1;
  const absl::Status status = Trainer::Create(plan_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"learning rate", "adam-beta1", "adam-eps", "no optimizer takes beta3",
                           "gradient norm", "-1 steps"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << part << " in " << status;
  }
}

// Samples are counted in int64, and rates are functions of that count.
TEST_F(TrainerTest, RefusesMoreStepsThanSamplesCanBeCounted) {
  auto trainer = Trainer::Create(plan_, Options());
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_EQ((*trainer)->most_steps(), std::numeric_limits<int64_t>::max() / 16);
  TrainingRunOptions run;
  run.steps = (*trainer)->most_steps() + 1;
  const absl::Status status = RunTraining(**trainer, run);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "576460752303423488 steps of 16 samples are more samples than can be counted; nearest "
            "legal: 576460752303423487 steps");
  EXPECT_EQ((*trainer)->steps_done(), 0);
}

TEST_F(TrainerTest, DataMustFitTheModel) {
  TrainOptions options = Options();
  options.data = *TokenDataset::FromBytes(std::string(100, 'x'), 7, "data");
  EXPECT_EQ(Trainer::Create(plan_, options).status().code(), absl::StatusCode::kInvalidArgument);
  options = Options();
  options.data.reset();
  options.data_path = TempPath("is-not-there");
  EXPECT_EQ(Trainer::Create(plan_, options).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TrainerTest, EvaluationNeedsDataAndAProgram) {
  auto trainer = Trainer::Create(plan_, Options());
  ASSERT_TRUE(trainer.ok());
  EXPECT_EQ((*trainer)->Evaluate().status().code(), absl::StatusCode::kFailedPrecondition);
  TrainingRunOptions run;
  run.steps = 1;
  run.eval_interval = 1;
  EXPECT_EQ(RunTraining(**trainer, run).code(), absl::StatusCode::kInvalidArgument);
  run.eval_interval = 0;
  run.steps = 0;
  EXPECT_EQ(RunTraining(**trainer, run).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mgc
