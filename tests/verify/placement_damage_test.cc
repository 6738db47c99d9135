// Plans that were damaged by hand, still readable: refused, by name of what is owed and where.

#include <algorithm>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/placement/placement.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What is found in the plan of a case after an edit.
std::string After(absl::string_view name, const std::function<void(Plan*)>& edit) {
  Plan plan = CompileTiny(name);
  edit(&plan);
  const absl::Status readable = CheckPlan(plan);
  EXPECT_TRUE(readable.ok()) << readable;
  Diagnostics findings;
  CheckPlacement(plan, &findings);
  return findings.ToString();
}

std::string AfterIn(absl::string_view name, absl::string_view segment,
                    const std::function<void(Segment*)>& edit) {
  return After(name, [&](Plan* plan) { edit(&SegmentOf(plan, segment)); });
}

// Without the `nth` instruction of an op.
std::string Without(absl::string_view name, absl::string_view segment, absl::string_view op,
                    int nth = 0) {
  return AfterIn(name, segment, [&](Segment* s) { Skip(s, InstrOf(*s, op, nth)); });
}

// --- Collectives of layers

TEST(PlacementDamageTest, RowParallelSumMissing) {
  EXPECT_THAT(Without("tp2", "layer.forward", "all_reduce"),
              HasSubstr("add: %layers.*.attention.out.bias @m[-] does not owe the sum over tp that "
                        "what it is added to owes; it would be counted 2 times: an all_reduce or "
                        "reduce_scatter over tp is missing before the others"));
  // The same, with the producer relabeled.
  EXPECT_THAT(
      AfterIn("tp2", "layer.forward",
              [](Segment* s) {
                const size_t at = InstrOf(*s, "all_reduce");
                s->slots[static_cast<size_t>(s->instrs[at].inputs[0])].sharding.sum = {};
                Skip(s, at);
              }),
      HasSubstr("matmul: result %layers.*.attention.out.matmul @m[-,-,-] must be @m[-,-,-]+tp: "
                "factor h is cut over tp and summed, a sum over tp is owed here, an all_reduce or "
                "reduce_scatter over tp has to follow [placement_v4]"));
}

TEST(PlacementDamageTest, GradientOfColumnParallelInputNotSummed) {
  for (int nth : {0, 1}) {
    EXPECT_THAT(Without("tp2", "layer.backward", "all_reduce", nth),
                HasSubstr("grad.part owes it, a sum over tp is owed here"));
  }
}

TEST(PlacementDamageTest, SequenceShardsNotGathered) {
  EXPECT_THAT(Without("tp4_sp", "layer.forward", "all_gather"),
              AllOf(HasSubstr("matmul: axis tp serves two factors"), HasSubstr("[placement_v1]")));
}

TEST(PlacementDamageTest, SumsOfTheLoss) {
  EXPECT_THAT(Without("tp2", "head.forward", "all_reduce", 0),
              HasSubstr("exp_sum: %head.reduce_max.part @m[-,-]^tp owes a maximum over tp, and "
                        "exp_sum is not linear in it: an all_reduce over tp is missing before it"));
  EXPECT_THAT(
      Without("tp2", "head.forward", "all_reduce", 1),
      HasSubstr("log_shift: %head.exp_sum.part @m[-,-]+tp owes a sum over tp, and log_shift "
                "is not linear in it"));
  EXPECT_THAT(Without("tp2", "head.forward", "all_reduce", 2),
              HasSubstr("sub: %head.log_shift @m[-,-] does not owe the sum over tp"));
}

TEST(PlacementDamageTest, AWholeValueLiftedOverTheWrongAxis) {
  EXPECT_THAT(AfterIn("tp2_pp2_dp2", "layer.update2",
                      [](Segment* s) {
                        Instr& lift = s->instrs[InstrOf(*s, "lift")];
                        lift.op = FindOp("reshard");
                        lift.attrs = {};
                      }),
              AllOf(HasSubstr("reshard: copies %layers.*.norm1/grad.square"),
                    HasSubstr("nothing leaves a sum over tp [placement_v5]")));
}

// --- Gradients and their means

TEST(PlacementDamageTest, NormGradientNotSummedUnderSequenceParallelism) {
  EXPECT_THAT(
      AfterIn("tp4_sp", "layer.reduce",
              [](Segment* s) { SkipPart(s, InstrOf(*s, "all_reduce"), 0); }),
      HasSubstr("class 0, layer 0, segment layer.update2, instruction 0 sum_squares: reads "
                "%layers.*.norm1/grad.resolved, but %layers.*.norm1/grad.next f32[embed=64] "
                "@m[-]+tp stands there"));
  // Both kinds of gradients are paid in two steps under ZeRO.
  EXPECT_THAT(
      AfterIn("tp2_pp2_dp2", "layer.update2",
              [](Segment* s) { SkipPart(s, InstrOf(*s, "all_reduce"), 0); }),
      HasSubstr("sum_squares: %layers.*.norm1/grad.resolved.step1 @m[-]+tp/dp owes a sum over "
                "tp, and sum_squares is not linear in it"));
}

TEST(PlacementDamageTest, ZeroPiecesNotReducedOrNotGathered) {
  EXPECT_THAT(AfterIn("dp2_zero", "layer.reduce",
                      [](Segment* s) { SkipPart(s, InstrOf(*s, "reduce_scatter"), 2); }),
              HasSubstr("where nothing before it has left a value [placement_v7]"));
  EXPECT_THAT(AfterIn("dp2_zero", "layer.prepare",
                      [](Segment* s) { SkipPart(s, InstrOf(*s, "all_gather"), 0); }),
              HasSubstr("where nothing before it has left a value [placement_v7]"));
}

TEST(PlacementDamageTest, TiedGradientsNotAddedUp) {
  EXPECT_THAT(
      Without("pp2", "embedding.update2", "all_reduce"),
      HasSubstr("class 0, parameter embedding.word: is held by the classes 0, 1: an all_reduce of "
                "its gradient between them is missing in the update [placement_v11]"));
}

TEST(PlacementDamageTest, WhatIsNotTrainedIsUpdated) {
  const std::string findings = After("pp2", [](Plan* plan) {
    for (ParamBlock& block : plan->blocks) {
      for (ParamEntry& entry : block.entries) {
        if (entry.name != "embedding.position") continue;
        entry.init.Set("train", int64_t{0});
        entry.states.clear();
      }
    }
  });
  EXPECT_THAT(findings, HasSubstr("class 0, parameter embedding.position: is not trained and has a "
                                  "gradient [placement_v10]"));
  EXPECT_THAT(findings, HasSubstr("class 0, parameter embedding.position: is not trained, and a "
                                  "step writes over its value [placement_v10]"));
}

TEST(PlacementDamageTest, ParameterNotUpdated) {
  EXPECT_THAT(
      AfterIn("one_rank", "layer.update4", [](Segment* s) { Remove(s, InstrOf(*s, "adamw")); }),
      AllOf(HasSubstr("layers.0.norm1: the update does not write its value"),
            HasSubstr("does not write its state m")));
}

// --- Values of the whole step

TEST(PlacementDamageTest, LossNotSummedOverStages) {
  EXPECT_THAT(
      After("tp2_pp2_dp2",
            [](Plan* plan) {
              Segment& s = SegmentOf(plan, "step.update1");
              const Instr& sum = s.instrs[InstrOf(s, "all_reduce")];
              s.slots[static_cast<size_t>(sum.outputs[0])].sharding.sum = {
                  PipelineAxis(plan->mesh)};
            }),
      HasSubstr("slice: result %tokens.entry @m[-] must be @m[-]+pp: %loss_and_tokens.resolved "
                "owes it, a sum over pp is owed here"));
}

TEST(PlacementDamageTest, NormEntryCountedTwice) {
  const auto norm_of = [](Plan* plan, int c) -> int64_t* {
    for (Call& call : plan->classes[static_cast<size_t>(c)].update) {
      const Segment& segment = plan->segments[static_cast<size_t>(call.segment)];
      for (size_t f = 0; f < segment.formals.size(); ++f) {
        if (segment.formals[f].region == Region::kNorm) return &call.bindings[f].offset;
      }
    }
    return nullptr;
  };
  EXPECT_THAT(After("pp4_gpipe", [&](Plan* plan) { *norm_of(plan, 2) = *norm_of(plan, 1); }),
              AllOf(HasSubstr("sums %grad_squares over pp, whose entry"),
                    HasSubstr("is made by 2 stages, each of them the whole of it [placement_v9]"),
                    HasSubstr("are made by no stage [placement_v7]")));
}

// The sum over the entries has one order whatever the plan, so that no bit depends on it.
TEST(PlacementDamageTest, NormEntriesExchanged) {
  const auto exchange = [](Segment* s) {
    std::vector<Slot*> entries;
    for (Slot& slot : s->slots) {
      const Formal& formal = s->formals[static_cast<size_t>(slot.formal)];
      if (formal.region == Region::kNorm) entries.push_back(&slot);
    }
    std::swap(entries[1]->offset, entries[2]->offset);
  };
  EXPECT_THAT(
      AfterIn("one_rank", "layer.update2", exchange),
      AllOf(HasSubstr("not in the order of the model's parameters"), HasSubstr("[placement_v13]")));
}

TEST(PlacementDamageTest, ReportsAtAnotherAddress) {
  EXPECT_THAT(After("pp2", [](Plan* plan) { plan->classes[1].reports[0].address += 64; }),
              HasSubstr("class 1, report loss: %grad_squares.resolved"));
}

// --- Memory between calls

TEST(PlacementDamageTest, FramesAndBoundaries) {
  EXPECT_THAT(AfterIn("one_rank", "layer.backward",
                      [](Segment* s) {
                        s->slots[static_cast<size_t>(SlotOf(*s, "mlp.gelu"))].offset += 64;
                      }),
              HasSubstr("reads %layers.*.mlp.gelu in frame"));
  EXPECT_THAT(After("pp2", [](Plan* plan) { plan->classes[0].train.transfers[0].address += 64; }),
              HasSubstr("class 0, 0F0: SEND_F0 moves what is at"));
  EXPECT_THAT(After("pp2",
                    [](Plan* plan) {
                      for (Action& action : plan->classes[0].train.compute) {
                        if (action.ref.kind != ActionKind::kBackward) continue;
                        action.frame += 64;
                        return;
                      }
                    }),
              HasSubstr("class 0, 0B0: works on the frame at"));
}

TEST(PlacementDamageTest, BoundaryOfAnotherSharding) {
  EXPECT_THAT(
      AfterIn("tp2", "head.forward",
              [](Segment* s) {
                s->slots[static_cast<size_t>(SlotOf(*s, "input"))].sharding.sum = {0};
              }),
      AllOf(HasSubstr("%input @m[-,-,-]+tp owes a sum over tp, and layer_norm is not linear "
                      "in it: an all_reduce or reduce_scatter over tp is missing before it"),
            HasSubstr("reads %input, but %output f32[batch=1,seq=16,embed=64] @m[-,-,-] "
                      "stands there, made by segment layer.forward, instruction"),
            HasSubstr("[placement_v8]")));
}

TEST(PlacementDamageTest, Parameters) {
  EXPECT_THAT(After("tp2", [](Plan* plan) { plan->blocks[1].entries[0].type.dtype = DType::kF64; }),
              HasSubstr("class 0, parameter"));
  EXPECT_THAT(After("pp2", [](Plan* plan) { plan->classes[1].blocks[0].owner = false; }),
              HasSubstr("is owned by 0 classes instead of one [placement_v10]"));
}

TEST(PlacementDamageTest, Loads) {
  EXPECT_THAT(AfterIn("tp2", "embedding.forward",
                      [](Segment* s) {
                        s->slots[static_cast<size_t>(SlotOf(*s, "tokens"))].sharding.sum = {0};
                      }),
              HasSubstr("a data input owes nothing and is cut by dims only [placement_v6]"));
  EXPECT_THAT(AfterIn("tp2", "embedding.forward",
                      [](Segment* s) { s->instrs[0].attrs.Set("name", std::string("weights")); }),
              HasSubstr("loads `weights` as i64[batch=1,seq=16]; it is f32[batch=1,seq=16] "
                        "[placement_v6]"));
  EXPECT_THAT(AfterIn("tp2", "embedding.forward",
                      [](Segment* s) { s->instrs[0].attrs.Set("name", std::string("x")); }),
              HasSubstr("loads `x`, which is no data input of the model [placement_v6]"));
}

}  // namespace
}  // namespace mgc
