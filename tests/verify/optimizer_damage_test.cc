// Plans whose optimizer steps otherwise than its model says, each by one edit: another iteration,
// another momentum or rate, a matrix that is not whole.

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ir/optimizers.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

// The segment that makes matrices orthogonal.
Segment& Orthogonal(Plan* plan) {
  for (Segment& segment : plan->segments) {
    for (const Instr& instr : segment.instrs) {
      if (instr.op != nullptr && instr.op->name == "spectral_scale") return segment;
    }
  }
  ADD_FAILURE() << "no matrix is made orthogonal";
  std::abort();
}

Instr& At(Segment& segment, absl::string_view op, int nth = 0) {
  return segment.instrs[InstrOf(segment, op, nth)];
}

size_t MakerOf(const Segment& segment, int slot) {
  size_t at = 0;
  while (segment.instrs[at].outputs != std::vector<int>{slot}) ++at;
  return at;
}

// Entries of matrices say something else than the model.
std::function<void(Plan*)> Says(const char* attr, const AttrValue& value) {
  return [=](Plan* plan) {
    for (ParamBlock& block : plan->blocks) {
      for (ParamEntry& entry : block.entries) {
        if (entry.init.Find(kRowDimsAttr) != nullptr) entry.init.Set(attr, value);
      }
    }
  };
}

const PlanDamage kDamages[] = {
    {"AnotherCoefficient", "meaning_v4",
     [](Plan* plan) { At(Orthogonal(plan), "scale").attrs.Set("value", -4.7751); }},
    {"ClipForMomentum", "meaning_v4",
     [](Plan* plan) {
       Instr& instr = At(Orthogonal(plan), "guarded_nesterov");
       std::swap(instr.inputs[2], instr.inputs[3]);
     }},
    {"StepTakenAnyway", "meaning_v4",
     [](Plan* plan) {
       Instr& step = At(Orthogonal(plan), "guarded_decayed_step");
       step.op = FindOp("decayed_step");
       step.inputs.pop_back();
     }},
    {"OneIterationLess", "meaning_v4",
     [](Plan* plan) {
       Segment& segment = Orthogonal(plan);
       Instr& last = At(segment, "spectral_scale");
       const Instr& sum = segment.instrs[MakerOf(segment, last.inputs[0])];
       last.inputs[0] = segment.instrs[MakerOf(segment, sum.inputs[0])].inputs[0];
     }},
    {"EntriesOfAnotherRate", "meaning_v9", Says(kRateScaleAttr, 0.5)},
    {"EntriesOfOtherRows", "meaning_v9", Says(kRowDimsAttr, int64_t{3})},
};

class OptimizerDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(OptimizerDamageTest, IsRefused) {
  ExpectRefused(CompileTiny("fp16_muon_tp2_dp2"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
