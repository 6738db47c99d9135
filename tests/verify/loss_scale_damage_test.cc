// Plans that scale their loss wrongly, each by one edit: a scale forgotten, doubled or in the wrong
// place, an overflow judged by another number or selected for another tensor, numbers carried on
// that are not those of the rule.

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

Instr& At(Segment& segment, absl::string_view op, int nth = 0) {
  return segment.instrs[InstrOf(segment, op, nth)];
}

void Insert(Segment& segment, size_t at, Instr instr) {
  segment.instrs.insert(segment.instrs.begin() + static_cast<int64_t>(at), std::move(instr));
}

// The instruction that makes the slot of that name.
size_t MakerOf(const Segment& segment, absl::string_view name) {
  const int slot = SlotOf(segment, name);
  size_t at = 0;
  while (segment.instrs[at].outputs != std::vector<int>{slot}) ++at;
  return at;
}

// Lets an instruction read operand 0 alone and hand it on.
void HandOn(Instr& instr) {
  instr.op = FindOp("reshard");
  instr.attrs = {};
  instr.inputs.resize(1);
}

// The last instruction that makes `name` is run again on what it made.
void Again(Segment& segment, absl::string_view name) {
  const size_t at = MakerOf(segment, name);
  Instr again = segment.instrs[at];
  again.inputs[0] = again.outputs[0];
  Insert(segment, at + 1, again);
}

// Operand `i` of an op becomes the slot of that name.
std::function<void(Plan*)> Reads(const char* segment, const char* op, size_t i, const char* name) {
  return [=](Plan* plan) {
    Segment& edited = SegmentOf(plan, segment);
    At(edited, op).inputs[i] = SlotOf(edited, name);
  };
}

// Two operands of an op change places, wherever a segment has it.
std::function<void(Plan*)> Exchanged(const char* op, size_t i, size_t k) {
  return [=](Plan* plan) {
    for (Segment& segment : plan->segments) {
      for (Instr& instr : segment.instrs) {
        if (instr.op != nullptr && instr.op->name == op)
          std::swap(instr.inputs[i], instr.inputs[k]);
      }
    }
  };
}

// One class runs its own copy of a segment of the update, changed.
void OnOneClass(Plan* plan, absl::string_view name, const std::function<void(Segment*)>& change) {
  Segment copy = SegmentOf(plan, name);
  change(&copy);
  PlanClass& last = plan->classes.back();
  for (Call& call : last.update) {
    if (plan->segments[static_cast<size_t>(call.segment)].name == name) {
      call.segment = static_cast<int>(plan->segments.size());
    }
  }
  copy.name += ".own";
  plan->segments.push_back(std::move(copy));
}

NamedAddress& Carried(PlanClass& rank_class, absl::string_view name) {
  return *std::find_if(rank_class.carried.begin(), rank_class.carried.end(),
                       [&](const NamedAddress& carried) { return carried.name == name; });
}

const PlanDamage kDamages[] = {
    {"SeedNotScaled", "meaning_v4",
     [](Plan* plan) {
       Segment& head = SegmentOf(plan, "head.backward");
       Skip(&head, MakerOf(head, ".seed.scaled"));
     }},
    {"SeedScaledTwice", "placement_v19",
     [](Plan* plan) { Again(SegmentOf(plan, "head.backward"), ".seed.scaled"); }},
    {"ScaleWrittenByABackward", "memory_v6",
     [](Plan* plan) {
       Segment& head = SegmentOf(plan, "head.backward");
       const Slot scale = head.slots[static_cast<size_t>(SlotOf(head, "loss_scale"))];
       Slot& scaled = head.slots[static_cast<size_t>(SlotOf(head, ".seed.scaled"))];
       scaled.formal = scale.formal;
       scaled.offset = scale.offset;
     }},
    {"ScaledBehindTheSeed", "placement_v19",
     [](Plan* plan) {
       Segment& head = SegmentOf(plan, "head.backward");
       const size_t at = MakerOf(head, ".seed.scaled");
       const Instr scaled = head.instrs[at];
       HandOn(head.instrs[at]);
       // The gradient of every token instead.
       Instr late = head.instrs[InstrOf(head, "mul", 0)];
       late.inputs = {late.outputs[0], scaled.inputs[1]};
       Insert(head, InstrOf(head, "mul", 0) + 1, late);
     }},
    {"NotUnscaled", "meaning_v4",
     [](Plan* plan) {
       Segment& step = SegmentOf(plan, "step.update3");
       HandOn(step.instrs[MakerOf(step, "tokens.scaled")]);
     }},
    {"UnscaledTwice", "meaning_v4",
     [](Plan* plan) { Again(SegmentOf(plan, "step.update3"), "tokens.scaled"); }},
    {"UnscaledByAnotherNumber", "meaning_v4", Reads("step.update3", "mul", 1, "loss_scale/growth")},
    {"NormNotUnscaled", "meaning_v4",
     [](Plan* plan) {
       Segment& step = SegmentOf(plan, "step.update3");
       HandOn(step.instrs[MakerOf(step, "grad_norm")]);
     }},
    {"StepNotUnscaled", "meaning_v4",
     [](Plan* plan) {
       Segment& step = SegmentOf(plan, "step.update3");
       HandOn(step.instrs[MakerOf(step, "clip.factor")]);
     }},
    {"FiniteOfAnotherNumber", "meaning_v4", Reads("step.update3", "is_finite", 0, "max_norm")},
    {"FiniteOnThisRankAlone", "placement_v3",
     [](Plan* plan) {
       Segment& step = SegmentOf(plan, "step.update3");
       const size_t total = InstrOf(step, "total");
       Slot local = step.slots[static_cast<size_t>(step.instrs[total].outputs[0])];
       local.sharding.sum =
           step.slots[static_cast<size_t>(SlotOf(step, "grad_squares"))].sharding.sum;
       local.formal = 0;
       local.offset = AlignUp(step.transient_bytes);
       step.transient_bytes = local.offset + 64;
       step.slots.push_back(local);
       Instr own = step.instrs[total];
       own.inputs = {SlotOf(step, "grad_squares")};
       own.outputs = {static_cast<int>(step.slots.size()) - 1};
       const int made = own.outputs[0];
       Insert(step, total, own);
       At(step, "is_finite").inputs[0] = made;
     }},
    {"StepTakenAnyway", "meaning_v4",
     [](Plan* plan) {
       Instr& step = At(SegmentOf(plan, "layer.update4"), "guarded_adamw");
       step.op = FindOp("adamw");
       step.inputs.pop_back();
     }},
    {"SelectedByAnotherNumber", "meaning_v4",
     Reads("layer.update4", "guarded_adamw", 12, "clip.factor")},
    {"CorrectionsExchanged", "meaning_v4", Exchanged("guarded_adamw", 9, 10)},
    {"CorrectionOfTheOtherMoment", "meaning_v4",
     Reads("step.update3", "bias_correction", 0, "beta2")},
    {"CorrectionBehindTheCount", "meaning_v4",
     [](Plan* plan) {
       Segment& step = SegmentOf(plan, "step.update3");
       for (int i = 0; i < 2; ++i) {
         const size_t at = InstrOf(step, "bias_correction");
         Instr correction = step.instrs[at];
         correction.inputs[1] = SlotOf(step, "adam_steps.next");
         step.instrs.erase(step.instrs.begin() + static_cast<int64_t>(at));
         step.instrs.push_back(correction);
       }
     }},
    {"EveryStepIsCounted", "meaning_v4", Reads("step.update3", "add", 1, "max_norm")},
    {"ScaleFollowsAnotherNumber", "meaning_v4",
     Reads("step.update3", "next_loss_scale", 3, "max_norm")},
    {"LeastScaleForTheWindow", "meaning_v4", Exchanged("next_loss_scale", 4, 5)},
    {"HysteresisOfTheWindow", "meaning_v4", Exchanged("next_loss_scale", 5, 6)},
    {"OneClassKeepsItsScale", "placement_v10",
     [](Plan* plan) {
       OnOneClass(plan, "step.update3",
                  [](Segment* segment) { Remove(segment, InstrOf(*segment, "next_loss_scale")); });
     }},
    {"OneClassHasItsOwnRule", "meaning_v4",
     [](Plan* plan) {
       OnOneClass(plan, "step.update3", [](Segment* segment) {
         std::vector<int>& inputs = At(*segment, "next_loss_scale").inputs;
         std::swap(inputs[4], inputs[6]);
       });
     }},
    {"CountersExchanged", "meaning_v4",
     [](Plan* plan) {
       for (PlanClass& rank_class : plan->classes) {
         std::swap(Carried(rank_class, kGrowthCount).address,
                   Carried(rank_class, kHysteresisLeft).address);
       }
     }},
    {"AnotherAddressIsCarried", "placement_v",
     [](Plan* plan) { Carried(plan->classes.back(), kLossScale).address += 8; }},
    {"NotCarried", "placement_v18", [](Plan* plan) { plan->classes.back().carried.pop_back(); }},
    {"NothingIsCarried", "placement_v18",
     [](Plan* plan) {
       for (PlanClass& rank_class : plan->classes) rank_class.carried.clear();
     }},
    {"ZeroedBeforeTheStep", "m",
     [](Plan* plan) {
       for (PlanClass& rank_class : plan->classes) {
         for (Range& range : rank_class.zeroed) {
           const int64_t scale = Carried(rank_class, kLossScale).address;
           if (range.end <= scale && scale < range.begin + rank_class.global_bytes) {
             range.end = scale + 8;
           }
         }
       }
     }},
    {"AnEvaluationWritesOverTheScale", "m",
     [](Plan* plan) {
       for (PlanClass& rank_class : plan->classes) {
         for (NamedAddress& report : rank_class.eval_reports) {
           const int64_t from = report.address;
           const int64_t by = Carried(rank_class, kLossScale).address - from;
           for (Call& call : rank_class.eval_update) {
             Segment& segment = plan->segments[static_cast<size_t>(call.segment)];
             for (size_t f = 1; f < segment.formals.size(); ++f) {
               if (segment.formals[f].region == Region::kGlobals) call.bindings[f].offset += by;
             }
           }
           for (NamedAddress& moved : rank_class.eval_reports) moved.address += by;
           break;
         }
       }
     }},
};

class LossScaleDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(LossScaleDamageTest, IsRefused) {
  ExpectRefused(CompileTiny("fp16_tp2_pp2_dp2"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, LossScaleDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST(LossScaleProofTest, AcceptsWhatIsCompiled) {
  for (const char* name : {"fp16", "fp16_tp2_pp2_dp2"}) {
    const VerifyReport report = VerifyPlan(CompileTiny(name));
    EXPECT_TRUE(report.ok()) << report.findings.ToString();
  }
}

}  // namespace
}  // namespace mgc
