// Plans in bf16 that round where they must not: in exact numbers they mean the same, so the rules
// on element types alone refuse them.

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/placement/placement.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

// A segment of a plan that is being edited.
struct Edit {
  const Plan& plan;
  Segment& segment;

  Slot& SlotAt(int slot) const { return segment.slots[static_cast<size_t>(slot)]; }

  // A slot like another, of its own place and element type.
  int Like(int slot, DType dtype) const {
    Slot made = SlotAt(slot);
    made.type.dtype = dtype;
    made.formal = 0;
    made.offset = AlignUp(segment.transient_bytes);
    made.bytes = LocalElements(made.type, made.sharding, plan.mesh) * SizeOf(dtype);
    segment.transient_bytes = made.offset + made.bytes;
    segment.slots.push_back(made);
    return static_cast<int>(segment.slots.size()) - 1;
  }

  // Puts a cast before instruction `at`; the slot it makes.
  int Cast(size_t at, int from, DType dtype) const {
    const int to = Like(from, dtype);
    Put(at, from, to);
    return to;
  }
  void Put(size_t at, int from, int to) const {
    Instr cast;
    cast.op = FindOp("cast");
    cast.attrs.Set(kDTypeAttr, std::string(NameOf(SlotAt(to).type.dtype)));
    cast.inputs = {from};
    cast.outputs = {to};
    cast.phase = segment.instrs[at == segment.instrs.size() ? at - 1 : at].phase;
    segment.instrs.insert(segment.instrs.begin() + static_cast<int64_t>(at), cast);
  }

  // Rounds an operand to bf16 and back.
  void RoundOperand(size_t instr, size_t operand) const {
    const int from = segment.instrs[instr].inputs[operand];
    const int narrow = Cast(instr, from, DType::kBF16);
    const int wide = Cast(instr + 1, narrow, DType::kF32);
    segment.instrs[instr + 2].inputs[operand] = wide;
  }

  // Lets an instruction read an operand in bf16.
  void NarrowOperand(size_t* instr, size_t operand) const {
    const int narrow = Cast(*instr, segment.instrs[*instr].inputs[operand], DType::kBF16);
    segment.instrs[++*instr].inputs[operand] = narrow;
  }

  // Lets an instruction make its result in bf16, and widens it behind.
  void NarrowResult(size_t instr) const {
    const int wide = segment.instrs[instr].outputs[0];
    const int narrow = Like(wide, DType::kBF16);
    segment.instrs[instr].outputs[0] = narrow;
    Attrs kept;
    for (const Attrs::Entry& entry : segment.instrs[instr].attrs) {
      if (entry.first != kDTypeAttr) kept.Set(entry.first, entry.second);
    }
    segment.instrs[instr].attrs = kept;
    Put(instr + 1, narrow, wide);
  }

  // Lets a collective move bf16: its operands are rounded before, its results widened behind.
  void NarrowStart(size_t instr) const {
    const int collective = segment.instrs[instr].collective;
    for (size_t part = 0; part < segment.instrs[instr].inputs.size(); ++part) {
      const int narrow = Cast(instr, segment.instrs[instr].inputs[part], DType::kBF16);
      Instr& start = segment.instrs[++instr];
      start.inputs[part] = narrow;
      const int wide = start.outputs[part];
      start.outputs[part] = Like(wide, DType::kBF16);
      size_t wait = instr;
      while (segment.instrs[wait].kind != InstrKind::kWait ||
             segment.instrs[wait].collective != collective) {
        ++wait;
      }
      Put(wait + 1, segment.instrs[instr].outputs[part], wide);
    }
  }

  // Lets a collective move what its first operand was rounded from.
  void WidenStart(size_t instr) const {
    size_t cast = instr;
    while (segment.instrs[cast].outputs != std::vector<int>{segment.instrs[instr].inputs[0]}) {
      --cast;
    }
    segment.instrs[instr].inputs[0] = segment.instrs[cast].inputs[0];
    segment.instrs[instr].outputs[0] = Like(segment.instrs[instr].outputs[0], DType::kF32);
  }
};

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
