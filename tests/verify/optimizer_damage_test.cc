// Plans whose optimizer steps otherwise than its model says, each by one edit: another iteration,
// another momentum or rate, a matrix that is not whole.

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/ir/optimizers.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

struct Damage {
  const char* name;
  const char* label;
  std::function<void(Plan*)> apply;
};

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

std::function<void(Plan*)> Changes(const char* op, int nth, const char* attr, AttrValue value) {
  return [=](Plan* plan) { At(Orthogonal(plan), op, nth).attrs.Set(attr, value); };
}

std::function<void(Plan*)> Exchanges(const char* op, size_t i, size_t k) {
  return [=](Plan* plan) {
    Instr& instr = At(Orthogonal(plan), op);
    std::swap(instr.inputs[i], instr.inputs[k]);
  };
}

// A parameter of the model and its entries say another.
std::function<void(Plan*)> Says(const char* attr, AttrValue value) {
  return [=](Plan* plan) {
    for (ParamBlock& block : plan->blocks) {
      for (ParamEntry& entry : block.entries) {
        if (entry.init.Find(kRowDimsAttr) != nullptr) entry.init.Set(attr, value);
      }
    }
  };
}

const Damage kDamages[] = {
    {"AnotherCoefficient", "meaning_v4", Changes("scale", 0, "value", -4.7751)},
    {"AnotherEpsilon", "meaning_v4", Changes("inverse_norm", 0, "eps", 1e-6)},
    {"NoDecay", "meaning_v4", Changes("guarded_decayed_step", 0, "decay", int64_t{0})},
    {"DecayForRate", "meaning_v4", Exchanges("guarded_decayed_step", 2, 3)},
    {"ClipForMomentum", "meaning_v4", Exchanges("guarded_nesterov", 2, 3)},
    {"GradientForMoment", "meaning_v4", Exchanges("guarded_nesterov", 0, 1)},
    {"StepTakenAnyway", "meaning_v4",
     [](Plan* plan) {
       Instr& step = At(Orthogonal(plan), "guarded_decayed_step");
       step.op = FindOp("decayed_step");
       step.inputs.pop_back();
     }},
    {"MomentTakenAnyway", "meaning_v4",
     [](Plan* plan) {
       Instr& step = At(Orthogonal(plan), "guarded_nesterov");
       step.op = FindOp("nesterov");
       step.inputs.pop_back();
     }},
    {"OneStepLess", "meaning_v4",
     [](Plan* plan) {
       Segment& segment = Orthogonal(plan);
       const int made = At(segment, "spectral_scale").inputs[0];
       for (Instr& instr : segment.instrs) {
         if (instr.outputs == std::vector<int>{made}) {
           for (const Instr& before : segment.instrs) {
             const bool of_last = before.op != nullptr && before.op->name == "scale" &&
                                  before.outputs[0] == instr.inputs[0];
             if (of_last) At(segment, "spectral_scale").inputs[0] = before.inputs[0];
           }
         }
       }
     }},
    {"OneRanksPiecesAlone", "placement_v",
     [](Plan* plan) {
       Segment& segment = Orthogonal(plan);
       Skip(&segment, InstrOf(segment, "all_gather"));
     }},
    {"EntriesOfAnotherRate", "meaning_v9", Says(kRateScaleAttr, 0.5)},
    {"EntriesOfOtherRows", "meaning_v9", Says(kRowDimsAttr, int64_t{3})},
};

class OptimizerDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(OptimizerDamageTest, IsRefused) {
  Plan plan = CompileTiny("fp16_muon_tp2_dp2");
  GetParam().apply(&plan);
  const absl::Status readable = CheckPlan(plan);
  ASSERT_TRUE(readable.ok()) << readable;
  const VerifyReport report = VerifyPlan(plan);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.findings.ToString(), HasSubstr(GetParam().label));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
