#include "tests/same_loss/step_in_double.h"

#include <cmath>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/own_models/compile_own_model.h"
#include "tests/same_loss/train_samples.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 77;

// The true gradient is {3, 4}; a run of f32 is off by this much of it.
TrainResult OffBy(double relative) {
  TrainResult result;
  result.losses = {2.0, 1.0};
  result.grad_norms = {5.0};
  result.gradients["w"] = {static_cast<float>(3 * (1 + relative)),
                           static_cast<float>(4 * (1 + relative))};
  return result;
}

std::string Between(double one, double many) {
  const StepInDouble exact = {2.0, 5.0, {{"w", {3.0, 4.0}}}};
  return DifferenceFrom(exact, OffBy(one), OffBy(many));
}

TEST(StepInDoubleTest, ManyRanksMayBeOffByAFewTimesWhatOneIs) {
  EXPECT_EQ(Between(0, 5e-6), "");
  EXPECT_EQ(Between(1e-4, 3e-4), "");
  EXPECT_EQ(Between(1e-4, 0), "");
  EXPECT_NE(Between(0, 1e-4), "") << "one rank shows that the model is no excuse";
  EXPECT_NE(Between(1e-4, 6e-4), "");
}

TEST(StepInDoubleTest, AModelThatOneRankCannotComputeSaysNothing) {
  const StepInDouble exact = {2.0, 5.0, {{"w", {3.0, 4.0}}}};
  EXPECT_FALSE(IsBeyondF32(exact, OffBy(1e-3)));
  EXPECT_TRUE(IsBeyondF32(exact, OffBy(0.1)));
  EXPECT_TRUE(IsBeyondF32(exact, OffBy(NAN)));
  TrainResult lost = OffBy(0);
  lost.losses[0] = NAN;
  EXPECT_TRUE(IsBeyondF32(exact, lost));
}

TEST(StepInDoubleTest, LaterLossesAreComparedToo) {
  const StepInDouble exact = {2.0, 5.0, {{"w", {3.0, 4.0}}}};
  TrainResult many = OffBy(0);
  many.losses[1] += 1e-4;
  EXPECT_NE(DifferenceFrom(exact, OffBy(0), many), "");
  TrainResult one = OffBy(1e-3);
  many.gradients = one.gradients;
  EXPECT_EQ(DifferenceFrom(exact, one, many), "") << "the gradients behind it are off by more";
  many.losses[1] += 1e-2;
  EXPECT_NE(DifferenceFrom(exact, one, many), "");
  many.losses.pop_back();
  EXPECT_NE(DifferenceFrom(exact, OffBy(0), many), "");
}

TEST(StepInDoubleTest, AGradientThatIsMissingIsTold) {
  const StepInDouble exact = {2.0, 5.0, {{"w", {3.0, 4.0}}, {"v", {1.0}}}};
  EXPECT_EQ(DifferenceFrom(exact, OffBy(0), OffBy(0)), "no gradient of v");
}

// Experts, norms and a softmax, in two micro-batches.
TEST(StepInDoubleTest, IsTheStepThatIsTrained) {
  const absl::StatusOr<Plan> plan = CompileOwnModel("dense_experts", "tp=1 micro=2");
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->num_micro_batches, 2);
  const absl::StatusOr<TrainResult> trained = TrainOnSamples(*plan, 1, kSeed);
  ASSERT_TRUE(trained.ok()) << trained.status();
  const absl::StatusOr<StepInDouble> exact = TakeStepInDouble(*plan, kSeed);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_NEAR(trained->losses[0], exact->loss, 1e-6 * exact->loss);
  EXPECT_NEAR(trained->grad_norms[0], exact->grad_norm, 1e-6 * exact->grad_norm);
  ASSERT_EQ(trained->gradients.size(), exact->gradients.size());
  for (const auto& [name, gradient] : exact->gradients) {
    EXPECT_LE(RelativeL2(gradient, trained->gradients.at(name)), 1e-5) << name;
  }
}

}  // namespace
}  // namespace mgc
