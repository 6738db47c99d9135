// Training in f16 from a scale that is far too high: steps are left out until gradients no longer
// overflow, the scale goes as Megatron-LM's rule says, and what is left out changes nothing.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/file.h"
#include "graph/ir/step_names.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/state/parameters.h"
#include "runtime/train/trainer.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 36;

TrainCase InF16(TrainCase c) {
  c.parallel.compute_type = DType::kF16;
  return c;
}

struct Trained {
  std::vector<double> losses, scales;
  std::vector<bool> left_out;
  int64_t taken = 0;
};

double CarriedOn(const Executor& executor, const PlanClass& plan_class, int64_t rank,
                 const std::string& name) {
  for (const NamedAddress& carried : plan_class.carried) {
    double value;
    executor.Get(rank, carried.address, sizeof value, &value);
    if (carried.name == name) return value;
  }
  return NAN;
}

// What every rank carries is what the others do.
void ExpectAlike(const Executor& executor) {
  const Plan& plan = executor.plan();
  for (const char* name : kCarriedNames) {
    const double first = CarriedOn(executor, plan.classes[0], 0, name);
    for (const PlanClass& plan_class : plan.classes) {
      for (const int64_t rank : RanksOfClass(plan, plan_class.coordinate)) {
        ASSERT_EQ(CarriedOn(executor, plan_class, rank, name), first) << name << ", rank " << rank;
      }
    }
  }
}

// Whether parameters are, bit for bit, those of `before`.
bool AreAsBefore(const Trainer& trainer, const std::string& before) {
  const std::string after = testing::TempDir() + "/loss_scale_after";
  EXPECT_EQ(trainer.WriteParameters(after), absl::OkStatus());
  return *ReadFile(after) == *ReadFile(before);
}

Trained Train(const TrainCase& c, const LossScaleOptions& scale, int64_t steps = kSteps) {
  Trained run;
  const absl::StatusOr<Plan> plan = CompileCase(c);
  EXPECT_TRUE(plan.ok()) << NameOf(c) << ": " << plan.status();
  if (!plan.ok()) return run;
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options = OptionsFor(*plan, c, steps, /*workers=*/0, kernels);
  options.loss_scale = scale;
  auto trainer = Trainer::Create(*plan, options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return run;
  const std::string before = testing::TempDir() + "/loss_scale_before";
  for (int64_t i = 0; i < steps; ++i) {
    EXPECT_EQ((*trainer)->WriteParameters(before), absl::OkStatus());
    const absl::StatusOr<StepRecord> step = (*trainer)->Step();
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return run;
    run.losses.push_back(step->loss);
    run.scales.push_back(step->loss_scale.value_or(NAN));
    run.left_out.push_back(step->left_out);
    run.taken += step->left_out ? 0 : 1;
    EXPECT_EQ(step->left_out, !std::isfinite(step->grad_norm)) << "step " << i;
    const bool stays = step->left_out || step->lr == 0;  // the warm-up begins at 0
    EXPECT_EQ(AreAsBefore(**trainer, before), stays) << "step " << i;
    ExpectAlike((*trainer)->executor());
  }
  EXPECT_EQ(CarriedOn((*trainer)->executor(), plan->classes[0], 0, kAdamSteps),
            static_cast<double>(run.taken));
  return run;
}

// The scales that Megatron-LM's rule gives for these overflows.
std::vector<double> ScalesOf(const LossScaleOptions& options, const std::vector<bool>& left_out) {
  double scale = options.initial;
  int64_t growth = 0, left = options.hysteresis;
  std::vector<double> scales;
  for (const bool overflow : left_out) {
    if (overflow) {
      growth = 0;
      if (--left <= 0) scale = std::max(scale / 2, options.min);
    } else if (++growth == options.window) {
      growth = 0;
      left = options.hysteresis;
      scale *= 2;
    }
    scales.push_back(scale);
  }
  return scales;
}

class LossScaleTest : public testing::TestWithParam<TrainCase> {};

// 2^32 falls to about 2^16, and grows again until the next overflow.
TEST_P(LossScaleTest, FallsAndGrowsByTheRule) {
  LossScaleOptions scale;
  scale.window = 4;
  const Trained run = Train(InF16(GetParam()), scale);
  ASSERT_EQ(run.losses.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(run.scales, ScalesOf(scale, run.left_out));
  EXPECT_GE(kSteps - run.taken, 14);
  EXPECT_GE(run.taken, 8);
  EXPECT_TRUE(run.left_out[0]);
  EXPECT_LT(run.losses.back(), run.losses[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, LossScaleTest,
    testing::Values(GptCase(1, 1, 1), WithSequenceParallel(GptCase(2, 1, 1)), GptCase(1, 2, 1),
                    WithZero(GptCase(1, 1, 2)),
                    WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))),
                                  RecomputeKind::kFull)),
    [](const auto& info) { return NameOf(info.param); });

// An overflow on one rank is one on all: pipelines have the bits of one rank.
TEST(LossScalesTest, AreThoseOfOneRankInAPipeline) {
  const Trained one = Train(InF16(GptCase(1, 1, 1)), {}, 24);
  const Trained two = Train(InF16(GptCase(1, 2, 1)), {}, 24);
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_EQ(one.scales, two.scales);
  EXPECT_EQ(one.left_out, two.left_out);
}

TEST(LossScalesTest, AFixedOneStays) {
  LossScaleOptions fixed;
  fixed.fixed = std::ldexp(1.0, 40);
  const Trained high = Train(InF16(GptCase(1, 1, 1)), fixed, 4);
  EXPECT_EQ(high.taken, 0);
  EXPECT_EQ(high.scales, std::vector<double>(4, *fixed.fixed));
  fixed.fixed = 512;
  const Trained low = Train(InF16(GptCase(1, 1, 1)), fixed, 4);
  EXPECT_EQ(low.taken, 4);
  EXPECT_EQ(low.scales, std::vector<double>(4, 512));
}

// Adam's first step moves a parameter by the rate, whatever its gradient: a later one, with moments
// that begin as late, by less.
TEST(LossScalesTest, StepsLeftOutDoNotCount) {
  const absl::StatusOr<Plan> plan = CompileCase(InF16(GptCase(1, 1, 2)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options = OptionsFor(*plan, GptCase(1, 1, 2), kSteps, /*workers=*/0, kernels);
  options.loss_scale = {};
  options.lr = {};
  options.lr.max_lr = options.lr.min_lr = 1e-3;
  options.lr.decay_samples = 1;
  options.weight_decay.start = options.weight_decay.end = 0;
  options.clip_grad = 0;
  auto trainer = Trainer::Create(*plan, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const auto before = GatherTensors((*trainer)->executor(), TensorRole::kParam);
  absl::StatusOr<StepRecord> step = (*trainer)->Step();
  while (step.ok() && step->left_out) step = (*trainer)->Step();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_GT(step->step, 10);
  const auto after = GatherTensors((*trainer)->executor(), TensorRole::kParam);
  ASSERT_TRUE(before.ok() && after.ok());
  double most = 0;
  for (size_t t = 0; t < before->size(); ++t) {
    most = std::max(most, LargestDifference((*before)[t].values, (*after)[t].values));
  }
  EXPECT_NEAR(most, 1e-3, 1e-5);
}

}  // namespace
}  // namespace mgc
