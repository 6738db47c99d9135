// Plans in bf16 that round where they must not: in exact numbers they mean the same, so the rules
// on element types alone refuse them.

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/placement/placement.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"
#include "tests/verify/edit_segment.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

struct Damage {
  const char* name;
  const char* segment;
  const char* label;
  std::function<void(const Edit&)> apply;
};

// The `nth` use of an op with an operand rounded.
std::function<void(const Edit&)> Rounded(const char* op, size_t operand, int nth = 0) {
  return [=](const Edit& edit) { edit.RoundOperand(InstrOf(edit.segment, op, nth), operand); };
}

const Damage kDamages[] = {
    {"ParameterOfTheUpdate", "layer.update4", "placement_v14", Rounded("adamw", 0)},
    {"GradientOfTheUpdate", "layer.update4", "placement_v14", Rounded("adamw", 1)},
    {"FirstMoment", "layer.update4", "placement_v14", Rounded("adamw", 2)},
    {"SecondMoment", "layer.update4", "placement_v14", Rounded("adamw", 3)},
    {"OfTheNorm", "layer.update2", "placement_v14", Rounded("sum_squares", 0)},
    {"SumOfProducts", "layer.backward", "placement_v14", Rounded("matmul_accumulate", 0)},
    {"SumOfBiases", "layer.backward", "placement_v14", Rounded("accumulate", 0)},
    {"SumOfRows", "embedding.backward", "placement_v14", Rounded("lookup_grad_accumulate", 0)},
    {"NormsShare", "layer.backward", "placement_v16",
     [](const Edit& edit) {
       const size_t made = InstrOf(edit.segment, "layer_norm_param_grad");
       size_t sum = made;
       while (edit.segment.instrs[sum].op->name != "accumulate") ++sum;
       edit.RoundOperand(sum, 1);
     }},
    {"BiassShare", "layer.backward", "placement_v16",
     [](const Edit& edit) { edit.NarrowResult(InstrOf(edit.segment, "reduce_sum")); }},
    {"LossReadsNarrow", "head.forward", "placement_v15",
     [](const Edit& edit) {
       size_t at = InstrOf(edit.segment, "weighted_sum");
       edit.NarrowOperand(&at, 0);
       edit.NarrowOperand(&at, 1);
     }},
    {"StatisticMadeNarrow", "head.forward", "placement_v15",
     [](const Edit& edit) {
       size_t at = InstrOf(edit.segment, "log_shift");
       edit.NarrowOperand(&at, 0);
       edit.NarrowOperand(&at, 1);
       edit.NarrowResult(at);
     }},
};

// What is found in a plan after a damage.
std::string FindingsAfter(const Damage& damage, Plan plan) {
  damage.apply({plan, SegmentOf(&plan, damage.segment)});
  for (PlanClass& rank_class : plan.classes) rank_class.memory.peak += int64_t{1} << 24;
  const absl::Status readable = CheckPlan(plan);
  EXPECT_TRUE(readable.ok()) << readable;
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  return findings.ToString();
}

class PrecisionDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(PrecisionDamageTest, IsRefused) {
  EXPECT_THAT(FindingsAfter(GetParam(), CompileTiny("bf16")), HasSubstr(GetParam().label));
}

INSTANTIATE_TEST_SUITE_P(All, PrecisionDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

// Of a plan that sums gradients over dp in bf16.
Plan CompileWithNarrowSums() {
  PlanCase c = {"narrow_sums", "gpt2-tiny", 2, 2, 1, 2, 2, 16, true};
  c.zero = 1;
  c.bf16 = true;
  c.bf16_sums = true;
  return CompilePlanCase(c);
}

// The first collective that reads no rounded operand and, where `group` says so, joins classes.
size_t WideStart(const Segment& segment, absl::string_view op, absl::string_view group) {
  for (int nth = 0;; ++nth) {
    const size_t at = InstrOf(segment, op, nth);
    const Instr& start = segment.instrs[at];
    const DType moved = segment.slots[static_cast<size_t>(start.inputs[0])].type.dtype;
    if (moved == DType::kF32 && start.attrs.Text("group") == group) return at;
  }
}

const Damage kSumDamages[] = {
    {"ParameterOfTheUpdate", "layer.update4", "placement_v14", Rounded("adamw", 0)},
    {"GradientOfTheUpdate", "layer.update4", "placement_v14", Rounded("adamw", 1)},
    {"FirstMoment", "layer.update4", "placement_v14", Rounded("adamw", 2)},
    {"OfTheNorm", "layer.update2", "placement_v14", Rounded("sum_squares", 0)},
    {"SumOverMicroBatches", "layer.backward", "placement_v14", Rounded("matmul_accumulate", 0)},
    {"NormOfTheNarrowSum", "layer.update2", "placement_v14",
     [](const Edit& edit) {
       const size_t norm = InstrOf(edit.segment, "sum_squares");
       size_t cast = norm;
       while (edit.segment.instrs[cast].outputs[0] != edit.segment.instrs[norm].inputs[0]) --cast;
       edit.segment.instrs[norm].inputs[0] = edit.segment.instrs[cast].inputs[0];
     }},
    {"SumOverTensorParallelRanks", "layer.update2", "placement_v14",
     [](const Edit& edit) { edit.NarrowStart(WideStart(edit.segment, "all_reduce", "")); }},
    {"SumOfCopies", "embedding.update2", "placement_v14",
     [](const Edit& edit) {
       edit.NarrowStart(WideStart(edit.segment, "all_reduce", "embedding"));
     }},
    {"OneSumWide", "layer.reduce", "placement_v17",
     [](const Edit& edit) { edit.WidenStart(InstrOf(edit.segment, "reduce_scatter")); }},
};

class SumDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(SumDamageTest, IsRefused) {
  EXPECT_THAT(FindingsAfter(GetParam(), CompileWithNarrowSums()), HasSubstr(GetParam().label));
}

INSTANTIATE_TEST_SUITE_P(All, SumDamageTest, testing::ValuesIn(kSumDamages),
                         [](const auto& info) { return info.param.name; });

// Every sum over dp is in the type that the plan states.
TEST(SumTypeTest, IsThatOfThePlan) {
  for (const bool narrow : {false, true}) {
    Plan plan = narrow ? CompileWithNarrowSums() : CompileTiny("bf16_tp2_pp2_dp2");
    Diagnostics none;
    CheckPlacement(plan, &none);
    EXPECT_EQ(none.ToString(), "");
    plan.gradient_sums = narrow ? DType::kF32 : DType::kBF16;
    Diagnostics findings;
    CheckPlacement(plan, &findings);
    EXPECT_THAT(findings.ToString(), HasSubstr("placement_v17"));
  }
}

}  // namespace
}  // namespace mgc
