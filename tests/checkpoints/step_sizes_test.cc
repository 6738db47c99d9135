// A run whose steps grow is the run of a smaller plan that was saved and went on under the larger
// one: bit for bit, and evaluations are those of the larger plan throughout. What its smaller steps
// are made of is proved, of every number of micro-batches.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "graph/plan/fewer_micro_batches.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/plan/time/predict_step.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/train/trainer.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 2;  // of each size

class StepSizesTest : public FolderTest, public testing::WithParamInterface<TrainCase> {
 protected:
  StepSizesTest() { whole_ = Compiled(GetParam()); }

  static Plan Compiled(const TrainCase& c) {
    absl::StatusOr<Plan> plan = CompileCase(c);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : Plan();
  }

  TrainOptions Options() const {
    TrainOptions options = OptionsFor(whole_, GetParam(), 2 * kSteps, 2, kernels_);
    options.eval_tail_samples = whole_.global_batch_size;
    return options;
  }

  std::unique_ptr<Trainer> Start(const Plan& plan, const TrainOptions& options) const {
    auto trainer = Trainer::Create(plan, options);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  static std::vector<double> Losses(Trainer* trainer) {
    std::vector<double> losses;
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto record = trainer->Step();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok()) break;
      losses.push_back(record->loss);
      losses.push_back(record->grad_norm);
    }
    return losses;
  }

  static double EvalLoss(Trainer* trainer) {
    const auto record = trainer->Evaluate();
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? record->loss : 0;
  }

  std::string Saved(const Trainer& trainer, const std::string& name) const {
    const auto dir = CheckpointDir::Open(Path(name));
    EXPECT_TRUE(dir.ok()) << dir.status();
    const auto saved = trainer.Save(dir->get(), "a test");
    EXPECT_TRUE(saved.ok()) << saved.status();
    return saved.ok() ? *saved : "";
  }

  const std::vector<KernelEntry> kernels_ = CpuKernels();
  Plan whole_;
};

TEST_P(StepSizesTest, IsTheRunOfTwoPlans) {
  const int64_t few = 1;
  const int64_t batch = whole_.global_batch_size / whole_.num_micro_batches * few;
  TrainCase smaller = GetParam();
  smaller.parallel.global_batch_size = batch;
  const Plan of_few = Compiled(smaller);
  const auto before = Start(of_few, Options());
  ASSERT_NE(before, nullptr);
  const std::vector<double> first = Losses(before.get());
  const std::string handed_over = Saved(*before, "handed_over");
  const auto after = Start(whole_, Options());
  ASSERT_NE(after, nullptr);
  ASSERT_TRUE(after->Resume(handed_over).ok());
  const double evaluated = EvalLoss(after.get());
  const std::vector<double> second = Losses(after.get());

  const Plan fewer = WithFewerMicroBatches(whole_, few);
  TrainOptions options = Options();
  options.steps = {{0, &fewer, {}}, {kSteps * batch, &whole_, {}}};
  const auto run = Start(whole_, options);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(Losses(run.get()), first);
  EXPECT_EQ(run->samples_done(), kSteps * batch);
  EXPECT_EQ(EvalLoss(run.get()), evaluated);
  EXPECT_EQ(Losses(run.get()), second);
  const std::string a = Saved(*after, "a");
  const std::string b = Saved(*run, "b");
  for (const char* name : {"parameters.safetensors", "second_moments.safetensors"}) {
    EXPECT_EQ(ReadFile(absl::StrCat(a, "/", name)).value(),
              ReadFile(absl::StrCat(b, "/", name)).value())
        << name;
  }
}

TEST_P(StepSizesTest, AreProved) {
  for (int64_t m = 1; m < whole_.num_micro_batches; ++m) {
    const Plan fewer = WithFewerMicroBatches(whole_, m);
    const VerifyReport report = VerifyPlan(fewer);
    EXPECT_TRUE(report.ok()) << m << " micro-batches: " << report.findings.ToString();
    const auto step = PredictStep(fewer);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_LT(StepNs(*step, fewer.mesh, fewer.machine), whole_.predicted_step_ns) << m;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, StepSizesTest,
    testing::Values(GptCase(1, 1, 1), WithZero(WithSequenceParallel(GptCase(2, 2, 2)), 1),
                    WithSchedule(GptCase(1, 2, 2), ScheduleKind::kInterleaved, 2),
                    WithSchedule(LlamaCase(1, 4, 1), ScheduleKind::kGpipe),
                    WithZero(LlamaCase(1, 2, 2), 3)),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace mgc
