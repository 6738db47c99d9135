// Plans on meshes of fewer axes, and of more than are above 1 at once.

#include "graph/verify/shrink/drop_axes.h"

#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/verify/meaning/check_model.h"
#include "graph/verify/meaning/gradient_sums.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/run_plan.h"
#include "graph/verify/meaning/step_inputs.h"
#include "graph/verify/shrink/small_plans.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/llama_case.h"

namespace mgc {
namespace {

// --- Fewer axes

// With any one axis at one rank the rest still computes the model.
TEST(DropAxesTest, APlanWithoutAnAxisIsProvedAtSmallSizes) {
  constexpr uint64_t kKey = 17;
  TrainCase c = CaseOf(4, 2);
  c.parallel.cp = 2;
  const absl::StatusOr<Plan> plan = CompileCase(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  int proved = 0;
  for (AxisId axis = 0; axis < plan->mesh.num_axes(); ++axis) {
    if (axis == PipelineAxis(plan->mesh)) continue;
    SCOPED_TRACE(plan->mesh.axes()[static_cast<size_t>(axis)].name);
    AxisSet dropped;
    dropped.Add(axis);
    const absl::StatusOr<Plan> fewer = WithoutAxes(*plan, dropped);
    ASSERT_TRUE(fewer.ok()) << fewer.status();
    EXPECT_EQ(fewer->mesh.num_axes(), plan->mesh.num_axes() - 1);
    const absl::StatusOr<std::vector<Plan>> small = SmallPlans(*fewer, WorkOfStep);
    ASSERT_TRUE(small.ok()) << small.status();
    const Plan& first = (*small)[0];
    const StepInputs inputs(first.model, kKey);
    const absl::StatusOr<StepReference> expected =
        EvaluateStep(first.model, inputs, kKey,
                     {first.num_micro_batches, ScalesLoss(first), ParamsOf(GradientSums(first)),
                      /*keep_backward=*/true});
    ASSERT_TRUE(expected.ok()) << expected.status();
    Diagnostics findings;
    RunPlan({*plan, first, inputs, *expected, kKey, /*eval=*/false, /*localize=*/true}, &findings);
    EXPECT_EQ(findings.ToString(), "");
    ++proved;
  }
  EXPECT_GE(proved, 3);
}

// --- More axes than are above 1 at once

// The same plan, dp being two axes.
Plan WithDpSplit(const Plan& plan) {
  Plan split = plan;
  split.mesh = *plan.mesh.Split("dp", {2, 2});
  const auto now = [&](AxisId axis) {
    return split.mesh.FindAtomic(plan.mesh.axes()[static_cast<size_t>(axis)].name);
  };
  const AxisId parts[] = {split.mesh.FindAtomic("dp.0"), split.mesh.FindAtomic("dp.1")};
  const AxisId dp = plan.mesh.FindAtomic("dp");
  const auto list = [&](const AxisList& axes) {
    AxisList made;
    for (AxisId axis : axes) {
      for (AxisId part : parts) {
        if (axis == dp) made.push_back(part);
      }
      if (axis != dp) made.push_back(now(axis));
    }
    return made;
  };
  const auto set = [&](AxisSet axes) {
    AxisSet made;
    for (AxisId axis : axes) {
      for (AxisId part : parts) made.Add(axis == dp ? part : now(axis));
    }
    return made;
  };
  const auto change = [&](Sharding* sharding) {
    for (AxisList& axes : sharding->dims) axes = list(axes);
    sharding->sum = set(sharding->sum);
    sharding->max = set(sharding->max);
    sharding->storage = list(sharding->storage);
  };
  for (Segment& segment : split.segments) {
    for (Slot& slot : segment.slots) change(&slot.sharding);
  }
  for (ParamBlock& block : split.blocks) {
    for (ParamEntry& entry : block.entries) {
      change(&entry.sharding);
      change(&entry.state_sharding);
    }
  }
  return split;
}

// tp in two sub-axes, since ranks share key heads; cp; dp in two; pp.
Plan FiveAxes() {
  TrainCase c = CaseOf(2, 2);
  c.parallel.tp = 4;
  c.parallel.cp = 2;
  c.kv_heads = 2;
  c.dp = 4;
  c.parallel.global_batch_size = 8;
  return WithDpSplit(*CompileCase(c));
}

TEST(FiveAxesTest, AreProvedOnMeshesOfFour) {
  const Plan plan = FiveAxes();
  EXPECT_EQ(plan.mesh.num_axes(), 6);
  EXPECT_EQ(VerifyPlan(plan).findings.ToString(), "");
  const absl::StatusOr<std::vector<Plan>> small = SmallPlans(plan, WorkOfStep);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_GT(small->size(), 2u);
  for (const Plan& one : *small) {
    EXPECT_LE(one.mesh.num_axes(), 5) << "pp among them";
    EXPECT_LE(one.mesh.world_size(), 2 * 4 * 4 * 2 * 2);
  }
}

TEST(FiveAxesTest, AWrongConstantIsSeen) {
  Plan plan = FiveAxes();
  for (Segment& segment : plan.segments) {
    for (Instr& instr : segment.instrs) {
      if (instr.op != nullptr && instr.op->name == "rms_norm") instr.attrs.Set("eps", 1e-7);
    }
  }
  EXPECT_THAT(VerifyPlan(plan).findings.ToString(), testing::HasSubstr("[meaning_v6]"));
}

}  // namespace
}  // namespace mgc
