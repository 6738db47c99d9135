// The proof of meaning on compiled plans: all of the corpus accepted, mistakes that keep every
// sharding and every order right refused.

#include "graph/verify/meaning/meaning.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
#include "tests/plan_forms/corpus.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using testing::HasSubstr;

std::string FindingsOf(const Plan& plan) {
  Diagnostics findings;
  CheckMeaning(plan, &findings);
  return findings.ToString();
}

class CompiledPlanTest : public testing::TestWithParam<PlanCase> {};

TEST_P(CompiledPlanTest, IsProved) {
  const Plan plan = CompilePlanCase(GetParam());
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_EQ(report.findings.ToString(), "");
  const bool only_pipeline = plan.mesh.num_axes() == (PipelineAxis(plan.mesh) < 0 ? 0 : 1);
  EXPECT_EQ(report.runs, only_pipeline ? 2 : 4);
  EXPECT_LT(report.miss_probability, 1e-6);
}

std::string NameOfCase(const testing::TestParamInfo<PlanCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Tiny, CompiledPlanTest, testing::ValuesIn(TinyPlanCases()), NameOfCase);

// What looks for the first wrong value finds none where there is none: every value of the backward
// pass, fused, owed or recomputed, is one that a single device computes too.
TEST_P(CompiledPlanTest, HasNoValueToBlame) {
  constexpr uint64_t kKey = 17;
  const Plan plan = CompilePlanCase(GetParam());
  const absl::StatusOr<std::vector<Plan>> plans = SmallPlans(plan, WorkOfStep);
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (const Plan& small : *plans) {
    const StepInputs inputs(small.model, kKey);
    const absl::StatusOr<StepReference> expected =
        EvaluateStep(small.model, inputs, kKey,
                     {small.num_micro_batches, ScalesLoss(small), ParamsOf(GradientSums(small)),
                      /*keep_backward=*/true});
    ASSERT_TRUE(expected.ok()) << expected.status();
    Diagnostics findings;
    RunPlan({plan, small, inputs, *expected, kKey, /*eval=*/false, /*localize=*/true}, &findings);
    EXPECT_EQ(findings.ToString(), "");
  }
}

// Under another name a sum would start at zero and hide what is made of a gradient that is zero.
TEST(GradientSumsTest, GoByTheNamesOfTheirParameters) {
  Plan plan = CompileTiny("tp2_pp2_vp2_dp2");
  int renamed = 0;
  for (Segment& segment : plan.segments) {
    for (Slot& slot : segment.slots) {
      if (!absl::EndsWith(slot.name, "norm1/grad")) continue;
      slot.name += ".total";
      ++renamed;
    }
  }
  ASSERT_GT(renamed, 0);
  EXPECT_THAT(FindingsOf(plan),
              HasSubstr("parameter `layers.0.norm1`: no backward adds to a sum of "
                        "gradients named `layers.0.norm1/grad` [meaning_v9]"));
}

TEST(SmallPlansTest, NoAxisIsTwoEverywhereAndNoTwoAreAlike) {
  const Plan plan = CompileTiny("tp2_pp2_vp2_dp2");
  const absl::StatusOr<std::vector<Plan>> small = SmallPlans(plan, WorkOfStep);
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_EQ(small->size(), 2u);
  const Mesh meshes[] = {(*small)[0].mesh, (*small)[1].mesh};
  const AxisId pipeline = PipelineAxis(plan.mesh);
  for (AxisId a = 0; a < plan.mesh.num_axes(); ++a) {
    if (a == pipeline) {
      EXPECT_EQ(meshes[0].size(a), plan.mesh.size(a));
      continue;
    }
    EXPECT_GE(std::max(meshes[0].size(a), meshes[1].size(a)), 3);
    for (AxisId b = a + 1; b < plan.mesh.num_axes(); ++b) {
      EXPECT_TRUE(b == pipeline || meshes[0].size(a) != meshes[0].size(b) ||
                  meshes[1].size(a) != meshes[1].size(b));
    }
  }
}

class WrongValueTest : public testing::Test {
 protected:
  Segment& Of(const char* name) { return SegmentOf(&plan_, name); }
  Plan plan_ = CompileTiny("tp2_pp2_vp2_dp2");
};

TEST_F(WrongValueTest, AnotherEpsilonNamesTheFirstValueThatDiffers) {
  Segment& segment = Of("layer.forward");
  segment.instrs[InstrOf(segment, "rms_norm", 1)].attrs.Set("eps", 1e-6);
  const std::string findings = FindingsOf(plan_);
  EXPECT_THAT(findings, HasSubstr("`layers.0.norm2.rms_norm`"));
  EXPECT_THAT(findings, HasSubstr("[meaning_v6]"));
}

TEST_F(WrongValueTest, AnotherDropoutKeyInBackward) {
  Segment& segment = Of("layer.backward");
  segment.instrs[InstrOf(segment, "dropout")].attrs.Set("key", "another");
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("[meaning_v4]"));
}

TEST_F(WrongValueTest, DecayOfANormsWeight) {
  Segment& segment = Of("layer.update4");
  Attrs& attrs = segment.instrs[InstrOf(segment, "adamw")].attrs;
  attrs.Set("decay", int64_t{1} - attrs.Int("decay"));
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("its value"));
}

TEST_F(WrongValueTest, AGradientThatReplacesTheAccumulator) {
  Segment& segment = Of("layer.backward");
  Instr& instr = segment.instrs[InstrOf(segment, "matmul_accumulate")];
  instr.op = FindOp("matmul");
  instr.inputs.erase(instr.inputs.begin());
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("its gradient"));
}

TEST_F(WrongValueTest, BetasExchanged) {
  for (PlanClass& c : plan_.classes) {
    for (NamedAddress& scalar : c.scalars) {
      if (scalar.name == "beta1") {
        scalar.name = "beta2";
      } else if (scalar.name == "beta2") {
        scalar.name = "beta1";
      }
    }
  }
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("its state m"));
}

// Exact in a softmax of exact numbers; in floats it overflows.
TEST_F(WrongValueTest, AMaximumOfOtherNumbers) {
  Segment& segment = Of("head.forward");
  Instr& instr = segment.instrs[InstrOf(segment, "reduce_max")];
  for (const Instr& other : segment.instrs) {
    if (other.op == nullptr || other.op->name != "matmul") continue;
    ASSERT_EQ(instr.inputs[0], other.outputs[0]);
  }
  // The sum of exponentials shifts by something that is no maximum of the logits.
  const int slot = instr.outputs[0];
  Instr negated = instr;
  negated.op = FindOp("scale");
  negated.attrs = {{"value", -1.0}};
  negated.inputs = {slot};
  negated.outputs = {slot};
  segment.instrs.insert(
      segment.instrs.begin() + static_cast<int64_t>(InstrOf(segment, "reduce_max")) + 1, negated);
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("[meaning_v6]"));
}

TEST_F(WrongValueTest, ALayerOnTheParametersOfAnother) {
  std::vector<Chunk>& chunks = plan_.classes[0].chunks;
  ASSERT_EQ(chunks.size(), 2u);
  std::swap(chunks[0].forward.back().layer, chunks[1].forward.back().layer);
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("first on rank"));
}

TEST_F(WrongValueTest, EvaluationIsLookedAtToo) {
  Segment& segment = Of("layer.forward.2");
  segment.instrs[InstrOf(segment, "attention")].attrs.Set("scale", 0.5);
  EXPECT_THAT(FindingsOf(plan_), HasSubstr("segment layer.forward.2"));
}

// --- Who is to blame

// Its first finding alone: the one that says where the mistake is.
std::string FirstFindingOf(const Plan& plan) {
  Diagnostics findings;
  CheckMeaning(plan, &findings);
  return findings.empty() ? "" : ToString(findings[0]);
}

// The op is named and the value whose gradient it makes, not only the parameters behind it.
TEST(BlameTest, AnOpOfTheBackwardPass) {
  Plan plan = CompileTiny("tp2");
  Segment& segment = SegmentOf(&plan, "layer.backward");
  Instr& instr = segment.instrs[InstrOf(segment, "gelu_grad")];
  std::swap(instr.inputs[0], instr.inputs[1]);
  EXPECT_EQ(FirstFindingOf(plan),
            "class 0, 0B0, segment layer.backward, instruction 2 gelu_grad: "
            "`layers.3.mlp.up.add.grad` @m[-,-,tp], gradient of gelu in layers.3.mlp, is nothing "
            "that a single device computes, first on rank 0 of the shrunk mesh [meaning_v6]");
}

// The product is named, which leaves a sum owed, not the all_reduce that reads it.
TEST(BlameTest, AnOpThatLeavesASumOwed) {
  Plan plan = CompileTiny("tp2");
  Segment& segment = SegmentOf(&plan, "layer.forward");
  const Instr& gelu = segment.instrs[InstrOf(segment, "gelu")];
  for (Instr& instr : segment.instrs) {
    if (instr.op == FindOp("matmul") && instr.inputs[0] == gelu.outputs[0]) {
      instr.inputs[0] = gelu.inputs[0];
    }
  }
  EXPECT_EQ(
      FirstFindingOf(plan),
      "class 0, 0F0, segment layer.forward, instruction 15 matmul: `layers.0.mlp.down.matmul` "
      "@m[-,-,-]+tp differs from the model's, first on rank 0 of the shrunk mesh [meaning_v6]");
}

TEST(BlameTest, AnOpThatLeavesASumOwedInBackward) {
  Plan plan = CompileTiny("tp2");
  Segment& segment = SegmentOf(&plan, "layer.backward");
  const Instr& gelu = segment.instrs[InstrOf(segment, "gelu_grad")];
  for (Instr& instr : segment.instrs) {
    if (instr.op == FindOp("matmul") && instr.inputs[0] == gelu.outputs[0]) {
      instr.inputs[0] = gelu.inputs[1];
    }
  }
  EXPECT_EQ(
      FirstFindingOf(plan),
      "class 0, 0B0, segment layer.backward, instruction 3 matmul: "
      "`layers.3.norm2.layer_norm.grad.part` @m[-,-,-]+tp, gradient of matmul in layers.3.mlp.up, "
      "is nothing that a single device computes, first on rank 0 of the shrunk mesh [meaning_v6]");
}

}  // namespace
}  // namespace mgc
