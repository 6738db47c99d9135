#include "graph/plan/plan_check.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string ErrorAfter(const std::function<void(Plan*)>& damage) {
  Plan plan = OddPlan();
  damage(&plan);
  return std::string(CheckPlan(plan).message());
}

// Of the training program of class `c`.
std::string AfterAction(int c, int i, const std::function<void(Action*)>& damage) {
  return ErrorAfter([&](Plan* p) {
    damage(&p->classes[static_cast<size_t>(c)].train.compute[static_cast<size_t>(i)]);
  });
}
std::string AfterTransfer(int c, int i, const std::function<void(Transfer*)>& damage) {
  return ErrorAfter([&](Plan* p) {
    damage(&p->classes[static_cast<size_t>(c)].train.transfers[static_cast<size_t>(i)]);
  });
}

TEST(PlanCheckTest, ASoundPlanPasses) {
  EXPECT_EQ(ErrorAfter([](Plan*) {}), "");
}

TEST(PlanCheckTest, ClassesAndBatches) {
  EXPECT_EQ(ErrorAfter([](Plan* p) { p->classes.pop_back(); }),
            "plan: 1 classes for 2 pipeline coordinates [plan_c1]");
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].coordinate = 0; }),
              HasSubstr("class 1 has coordinate 0 [plan_c1]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->num_micro_batches = 0; }), HasSubstr("[plan_c1]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->num_micro_batches = 7; }),
              HasSubstr("plan: 7 micro-batches do not divide 24 samples of a step [plan_c1]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->machine.tiers.clear(); }), HasSubstr("[machine_c5]"));
}

TEST(PlanCheckTest, ManyViolationsAreCutShort) {
  Plan plan = OddPlan();
  for (Segment& segment : plan.segments) {
    for (int i = 0; i < 30; ++i) segment.slots.push_back({"", {}, {}, 9, 0, 0});
  }
  const Diagnostics violations = FindPlanViolations(plan);
  EXPECT_EQ(violations.size(), Diagnostics::kMostOfALabel);
  EXPECT_EQ(violations.found(), 30 * plan.segments.size());
}

TEST(PlanCheckTest, WhatIsCutShortIsNotTakenForSound) {
  Plan plan = OddPlan();
  ASSERT_GT(plan.segments.size(), 1u);
  const Instr reads = plan.segments[0].instrs[0];
  for (size_t i = 0; i < Diagnostics::kMost; ++i) plan.segments[0].instrs.push_back(reads);
  for (Segment& segment : plan.segments) {
    for (Instr& instr : segment.instrs) instr.inputs = {99};  // workspaces are asked of slots
  }
  EXPECT_GT(FindPlanViolations(plan).left_out(), 0u);
}

TEST(PlanCheckTest, Slots) {
  const auto slot = [](const std::function<void(Slot*)>& damage) {
    return ErrorAfter([&](Plan* p) { damage(&p->segments[0].slots[3]); });
  };
  EXPECT_THAT(slot([](Slot* s) { s->formal = 3; }),
              HasSubstr("segment layer forward: slot %3 z is in formal 3 of 3 [plan_c2]"));
  EXPECT_THAT(slot([](Slot* s) { s->formal = -1; }), HasSubstr("[plan_c2]"));
  EXPECT_THAT(slot([](Slot* s) { s->bytes = 4; }),
              HasSubstr("slot %3 z needs 8 bytes and has 4 [plan_c2]"));
  EXPECT_THAT(slot([](Slot* s) { s->bytes = -1; }), HasSubstr("[plan_c7]"));
  EXPECT_THAT(slot([](Slot* s) { s->offset = 4; }), HasSubstr("[plan_c7]"));
  EXPECT_THAT(slot([](Slot* s) { s->offset = 4096; }),
              HasSubstr("ends at 4112, the transient region at 4096 [plan_c10]"));
  EXPECT_THAT(slot([](Slot* s) { s->sharding.dims.pop_back(); }), HasSubstr("[sharding_c1]"));
  EXPECT_THAT(slot([](Slot* s) { s->sharding.max = {5}; }), HasSubstr("[sharding_c4]"));
  EXPECT_THAT(slot([](Slot* s) { s->type.dims[0].size = 0; }), HasSubstr("[type_c1]"));
  EXPECT_THAT(slot([](Slot* s) {
                s->type.dims.assign(8, {1, "", 1 << 24});
                s->sharding = Sharding::Whole(8);
              }),
              HasSubstr("needs 288230376151711745 bytes"))
      << "the product exceeds 64 bits";
}

TEST(PlanCheckTest, Instructions) {
  const auto instr = [](int i, const std::function<void(Instr*)>& damage) {
    return ErrorAfter([&](Plan* p) { damage(&p->segments[0].instrs[static_cast<size_t>(i)]); });
  };
  EXPECT_THAT(instr(0, [](Instr* i) { i->attrs = {}; }), HasSubstr("loads one slot"));
  EXPECT_THAT(instr(1, [](Instr* i) { i->inputs[0] = 5; }),
              HasSubstr("instruction 1 names slot %5 of 5 [plan_c3]"));
  EXPECT_THAT(instr(1, [](Instr* i) { i->inputs[0] = 2; }), HasSubstr("instruction 1: gelu"));
  EXPECT_THAT(instr(1, [](Instr* i) { i->inputs.push_back(0); }), HasSubstr("gelu_a0"));
  EXPECT_THAT(instr(1, [](Instr* i) { i->op = nullptr; }), HasSubstr("has no op [plan_c3]"));
  EXPECT_THAT(instr(1, [](Instr* i) { i->loc.file = 2; }), HasSubstr("[plan_c3]"));
  EXPECT_THAT(instr(2, [](Instr* i) { i->outputs.pop_back(); }), HasSubstr("no collective"));
  EXPECT_THAT(instr(2, [](Instr* i) { i->outputs[1] = 0; }), HasSubstr("results of other types"));
  EXPECT_THAT(instr(3, [](Instr* i) { i->inputs = {0}; }), HasSubstr("waits and has slots"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->segments[1].formals.clear(); }),
              HasSubstr("the first formal is `transient` [plan_c5]"));
}

TEST(PlanCheckTest, Collectives) {
  const auto segment = [](const std::function<void(Segment*)>& damage) {
    return ErrorAfter([&](Plan* p) { damage(&p->segments[0]); });
  };
  EXPECT_THAT(segment([](Segment* s) { s->instrs[2].collective = 1; }),
              HasSubstr("instruction 2 is of collective 1 of 1 [plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { s->instrs[3].collective = -1; }), HasSubstr("[plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { s->num_collectives = 2; }),
              HasSubstr("1 collectives of 2 are started [plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { s->instrs.push_back(s->instrs[3]); }),
              HasSubstr("waited for twice [plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { std::swap(s->instrs[2], s->instrs[3]); }),
              HasSubstr("waited for before it is started [plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { s->instrs.push_back(s->instrs[2]); }),
              HasSubstr("collective 0 is started where 1 is next [plan_c8]"));
  EXPECT_THAT(segment([](Segment* s) { s->slots[3].sharding.sum = {}; }),
              HasSubstr("do not differ by one all_reduce [local_c3] [plan_c9]"));
  EXPECT_THAT(
      segment([](Segment* s) { s->slots[4].sharding.storage = {}; }),
      HasSubstr("instruction 2 from @m[-]+tp/dp to @m[-]: operand and result do not differ by "
                "one all_reduce [local_c3] [plan_c9]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->segments[1].slots[0].sharding.sum = {0}; }), "");
  EXPECT_THAT(ErrorAfter([](Plan* p) {
                p->segments[1].slots[0].sharding.sum = {0};
                p->segments[1].instrs[0].outputs = {1};
              }),
              HasSubstr("between stages is an all_reduce that keeps its sharding [plan_c9]"));
}

TEST(PlanCheckTest, DataInputs) {
  const auto segment = [](const std::function<void(Segment*)>& damage) {
    Plan plan = OddPlan();
    damage(&plan.segments[0]);
    EXPECT_TRUE(CheckPlan(plan).ok()) << "a model may name its inputs as it likes";
    return std::string(CheckPlanToRun(plan).message());
  };
  EXPECT_EQ(segment([](Segment* s) { s->instrs[0].attrs.Set("name", "to\"kens"); }), "");
  EXPECT_EQ(segment([](Segment* s) { s->instrs[0].attrs.Set("name", "targets"); }), "");
  EXPECT_THAT(
      segment([](Segment* s) { s->slots[2].type.dims[0].size = 2; }),
      HasSubstr("segment layer forward: instruction 0 loads `tokens` as i64[2,2]; its first "
                "dim counts the 3 samples of a micro-batch [plan_c14]"));
  EXPECT_THAT(segment([](Segment* s) {
                s->slots[2].type = {DType::kI64, {}};
                s->slots[2].sharding.dims.clear();
              }),
              HasSubstr("as i64[]; its first dim counts the 3 samples of a micro-batch"));
  EXPECT_THAT(segment([](Segment* s) { s->slots[2].type.dtype = DType::kF64; }),
              HasSubstr("as f64[3,2]; a step is fed with f32 and i64 [plan_c14]"));
  EXPECT_THAT(
      segment([](Segment* s) {
        s->slots.push_back(s->slots[2]);
        s->slots.back().type.dims[1].size = 1;
        s->instrs.push_back(s->instrs[0]);
        s->instrs.back().outputs = {static_cast<int>(s->slots.size()) - 1};
      }),
      HasSubstr("loads `tokens` as i64[3,1]; another load takes it as i64[3,2] [plan_c14]"));
  EXPECT_THAT(segment([](Segment* s) { s->slots[2].sharding.storage = {1}; }),
              HasSubstr("as i64[3,2] that is stored in pieces [plan_c14]"));
}

TEST(PlanCheckTest, Workspaces) {
  EXPECT_THAT(
      ErrorAfter([](Plan* p) { p->classes[1].memory.workspace = 16; }),
      HasSubstr("class 1: calls layer forward, which may use 17 bytes of workspace, and has "
                "16 [plan_c15]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) {
                Instr* sum = &p->segments[0].instrs[1];
                sum->op = FindOp("sum_squares");
                p->segments[0].slots[0].type = {DType::kF64, {}};
                p->segments[0].slots[0].sharding = Sharding::Whole(0);
                p->segments[0].instrs[2].inputs = {3};
                p->segments[0].instrs[2].outputs = {4};
                p->segments[0].workspace_bytes = 7;
              }),
              HasSubstr("segment layer forward: instruction 1 sum_squares may use 8 bytes of "
                        "workspace, the segment has 7 [plan_c15]"));
}

TEST(PlanCheckTest, CollectivesBetweenStages) {
  // Classes that lie between the first and the last.
  Plan plan = OddPlan();
  const absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp", 2}, {"dp", 3}, {"pp", 3}});
  ASSERT_TRUE(mesh.ok());
  plan.mesh = *mesh;
  plan.classes.push_back(plan.classes[1]);
  plan.classes[2].coordinate = 2;
  plan.classes[2].chunks[0].stage = plan.classes[2].eval_chunks[0].stage = 2;
  plan.stages = {{0, 0}, {1, 0}, {2, 0}};
  EXPECT_THAT(std::string(CheckPlan(plan).message()),
              HasSubstr("class 1: calls layer forward, which joins the classes 0, 2 [plan_c16]"));
  using List = std::vector<int64_t>;
  const auto error_of = [&](const Attrs& attrs) {
    for (Segment& segment : plan.segments) {
      for (Instr& instr : segment.instrs) {
        if (JoinsClasses(instr)) instr.attrs = attrs;
      }
    }
    return std::string(CheckPlan(plan).message());
  };
  EXPECT_THAT(error_of({{"classes", List{1, 2}}}),
              HasSubstr("which joins the classes 1, 2 [plan_c16]"));
  EXPECT_THAT(error_of({{"classes", List{0, 1, 2}}}), Not(HasSubstr("plan_c16")));
  EXPECT_THAT(error_of({{"group", std::string("t\np")}}),
              HasSubstr("instruction 0: joins the classes of group `t\\x0Ap`; it says group "
                        "`embedding`, those of the first and the last stage, or two or more of the "
                        "3 classes along pp, ascending [plan_c16]"));
  EXPECT_THAT(error_of({{"classes", List{0, 3}}}), HasSubstr("joins the classes 0, 3; it says"));
  for (const List& wrong : {List{}, List{1}, List{-1, 0}, List{2, 0}, List{0, 0}}) {
    EXPECT_THAT(error_of({{"classes", wrong}}), HasSubstr("ascending [plan_c16]"));
  }
}

TEST(PlanCheckTest, WhatAStartTakesTogether) {
  const auto segment = [](const std::function<void(Segment*)>& damage) {
    return ErrorAfter([&](Plan* p) { damage(&p->segments[0]); });
  };
  EXPECT_THAT(segment([](Segment* s) {
                s->slots[3].sharding.sum = {1};
                s->slots[3].sharding.storage = {};
                s->slots[4].sharding.storage = {};
              }),
              HasSubstr("instruction 2 takes together all-reduce over tp and all-reduce over dp "
                        "[plan_c17]"));
  const auto lift = [](InstrKind kind) {
    return [kind](Segment* s) {
      std::swap(s->instrs[2].inputs, s->instrs[2].outputs);
      s->instrs[2].op = FindOp("lift");
      if (kind == InstrKind::kStart) return;
      s->instrs.resize(3);
      s->instrs[2].kind = kind;
      s->instrs[2].collective = -1;
      s->instrs[2].inputs = {0};
      s->instrs[2].outputs = {1};
      s->num_collectives = 0;
    };
  };
  EXPECT_THAT(segment(lift(InstrKind::kStart)),
              HasSubstr("instruction 2 starts lift, which moves nothing between ranks [plan_c17]"));
  EXPECT_EQ(segment(lift(InstrKind::kCompute)), "");
  EXPECT_THAT(segment([&](Segment* s) {
                lift(InstrKind::kCompute)(s);
                std::swap(s->instrs[2].inputs, s->instrs[2].outputs);
                s->instrs[2].op = FindOp("all_reduce");
              }),
              HasSubstr("instruction 2 computes all_reduce, which moves data between ranks and "
                        "must be started [plan_c17]"));
}

TEST(PlanCheckTest, ParametersAndCalls) {
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->blocks[0].entries[1].gradient_offset = -8; }),
              HasSubstr("block layer: layers.*.w: its gradient is at -8 [plan_c4]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->blocks[0].entries[0].states[1].offset = 2992; }),
              HasSubstr("its state v, 96 bytes at 2992, is outside of the block's 3000"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->blocks[0].entries[0].states.pop_back(); }),
              HasSubstr("layers.*.w: it keeps the states {m}, its optimizer {m, v} [plan_c4]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->blocks[0].entries[0].init.Set("std", "x"); }),
              HasSubstr("[input_c1] [plan_c4]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[0].blocks[0].block = 7; }),
              HasSubstr("class 0: holds block 7 of "));
  EXPECT_THAT(
      ErrorAfter([](Plan* p) { p->classes[0].blocks[0].state_base = 16000; }),
      HasSubstr("holds 3000 bytes of block layer at 16000 of an arena of 16384 [plan_c10]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].update[0].segment = 3; }),
              HasSubstr("class 1: calls segment 3 of 3 [plan_c5]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].chunks[0].forward[0].bindings.pop_back(); }),
              HasSubstr("has 3 formals, 2 are bound [plan_c5]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].update[0].layer = 4; }),
              HasSubstr("is called for layer 4 [plan_c5]"));
  EXPECT_THAT(
      ErrorAfter([](Plan* p) { p->classes[1].update[0].bindings[1].base = BaseKind::kFrame; }),
      HasSubstr("behind an address that the update has not [plan_c5]"));
  EXPECT_THAT(
      ErrorAfter([](Plan* p) { p->classes[1].update[0].bindings[1].offset = 16376; }),
      HasSubstr("`grads:he ad:` of layer forward ends at 16632 of 16384 bytes of the arena"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].chunks[0].frame_bytes = 256; }),
              HasSubstr("`frame` of layer forward ends at 368 of 256 bytes of a frame [plan_c10]"));
}

TEST(PlanCheckTest, SizesAndRegions) {
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[0].memory.peak = -1; }),
              HasSubstr("a size is negative or more than 2^58 [plan_c7]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[0].zeroed[0].begin = 72; }),
              HasSubstr("zeroes [72, 64) of an arena of 16384 [plan_c10]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[0].reports[0].address = -8; }),
              HasSubstr("`lo\"ss` at -8 of an arena of 16384 [plan_c10]"));
  EXPECT_THAT(AfterAction(0, 0, [](Action* a) { a->frame = 1025; }), HasSubstr("[plan_c10]"));
  EXPECT_THAT(AfterAction(0, 0, [](Action* a) { a->frame = -1; }),
              HasSubstr("0F0 uses 368 bytes at -1 of an arena of 16384 [plan_c10]"));
  EXPECT_THAT(AfterAction(1, 1, [](Action* a) { a->input = 16320; }),
              HasSubstr("1F0 uses 192 bytes at 16320 of an arena of 16384 [plan_c10]"));
  EXPECT_THAT(AfterTransfer(0, 0, [](Transfer* t) { t->address = 16320; }),
              HasSubstr("0SEND_F0 moves 192 bytes at 16320 of an arena of 16384 [plan_c10]"));
}

TEST(PlanCheckTest, NamesOfActions) {
  EXPECT_THAT(AfterAction(0, 3, [](Action* a) { a->ref.chunk = 1; }),
              HasSubstr("names micro-batch 2 of 8 or chunk 1 of 1 [plan_c6]"));
  EXPECT_THAT(AfterAction(1, 1, [](Action* a) { a->waits[0].micro_batch = -1; }),
              HasSubstr("[plan_c6]"));
  EXPECT_THAT(AfterAction(1, 1, [](Action* a) { a->waits[0].kind = TransferKind::kRecvBackward; }),
              HasSubstr("1F0 names 1RECV_B0, which is not listed [plan_c6]"));
  EXPECT_THAT(AfterTransfer(1, 6, [](Transfer* t) { t->after[0].chunk = 9; }),
              HasSubstr("[plan_c6]"));
  EXPECT_THAT(AfterTransfer(0, 0, [](Transfer* t) { t->anchor.kind = ActionKind::kPrepare; }),
              HasSubstr("0SEND_F0 names 0P0, which is not listed [plan_c6]"));
  EXPECT_THAT(AfterTransfer(1, 6, [](Transfer* t) { t->after_transfers[0].micro_batch = 4; }),
              HasSubstr("1RECV_F3 comes after 1RECV_F4, which is listed behind it [plan_c6]"));
  EXPECT_THAT(AfterTransfer(0, 0, [](Transfer* t) { t->issued = -1; }), HasSubstr("[plan_c6]"));
}

TEST(PlanCheckTest, OrderOfActions) {
  const auto compute = [](int c, const std::function<void(std::vector<Action>*)>& damage) {
    return ErrorAfter([&](Plan* p) { damage(&p->classes[static_cast<size_t>(c)].train.compute); });
  };
  EXPECT_THAT(compute(0, [](std::vector<Action>* a) { a->push_back(a->front()); }),
              HasSubstr("0F0 occurs twice [plan_c11]"));
  EXPECT_THAT(compute(0, [](std::vector<Action>* a) { std::swap((*a)[0], (*a)[1]); }),
              HasSubstr("0F1 is out of order [plan_c11]"));
  EXPECT_THAT(compute(1, [](std::vector<Action>* a) { std::swap((*a)[1], (*a)[2]); }),
              HasSubstr("1B0 is out of order [plan_c11]"));
  EXPECT_THAT(compute(1, [](std::vector<Action>* a) { std::swap((*a)[0], (*a)[1]); }),
              HasSubstr("1P0 is out of order [plan_c11]"));
  EXPECT_THAT(compute(1, [](std::vector<Action>* a) { a->erase(a->begin()); }),
              HasSubstr("stage 1 never makes its working copies [plan_c11]"));
  EXPECT_THAT(compute(0, [](std::vector<Action>* a) { a->erase(a->end() - 2); }),
              HasSubstr("runs stage 0 forward 8 and backward 7 times for 8 micro-batches"));
  EXPECT_THAT(compute(0, [](std::vector<Action>* a) { a->pop_back(); }),
              HasSubstr("the update is missing [plan_c11]"));
  EXPECT_THAT(compute(0, [](std::vector<Action>* a) { std::swap((*a)[15], (*a)[16]); }),
              HasSubstr("0U0 is out of order [plan_c11]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[0].update[0].running = -2; }),
              HasSubstr("waits until -2 collectives run [plan_c5]"));
  EXPECT_THAT(
      ErrorAfter([](Plan* p) { p->classes[0].eval.compute[3].ref.kind = ActionKind::kBackward; }),
      HasSubstr("0B3 is out of order [plan_c11]"));
}

TEST(PlanCheckTest, SendsAndReceives) {
  EXPECT_THAT(AfterTransfer(0, 0, [](Transfer* t) { t->bytes = 200; }),
              HasSubstr("class 0: 0SEND_F0 of 200 bytes has no counterpart in class 1 [plan_c12]"));
  EXPECT_THAT(AfterTransfer(0, 0, [](Transfer* t) { t->peer = 0; }),
              HasSubstr("0SEND_F0 has class 0 as its peer [plan_c12]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) {
                p->classes[0].train.transfers.erase(p->classes[0].train.transfers.begin());
              }),
              HasSubstr("class 1: 1RECV_F0 of 192 bytes has no counterpart in class 0 [plan_c12]"));
  EXPECT_THAT(AfterAction(1, 1, [](Action* a) { a->waits.clear(); }),
              HasSubstr("1F0 does not wait for 1RECV_F0 [plan_c12]"));
}

TEST(PlanCheckTest, Stages) {
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].eval_chunks[0].first_layer = 1; }),
              HasSubstr("evaluation: stage 1 has 1 layers from 1, the next is 2 [plan_c13]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].chunks[0].has_embedding = true; }),
              HasSubstr("hold 3 layers of 3, 2 embeddings and 1 heads [plan_c13]"));
}

TEST(PlanCheckTest, WhereStagesLive) {
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].chunks[0].stage = 0; }),
              HasSubstr("training: chunk 0 of class 1 says it is stage 0, and is placed as stage 1 "
                        "[plan_c19]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->classes[1].eval_chunks.clear(); }),
              HasSubstr("evaluation: class 1 has no chunk [plan_c19]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->stages.pop_back(); }),
              HasSubstr("1 stages are placed, the classes have 2 chunks [plan_c19]"));
  EXPECT_THAT(ErrorAfter([](Plan* p) { p->stages[1] = p->stages[0]; }),
              HasSubstr("chunk 0 of class 0 says it is stage 0, and is placed as stage 1"));
  for (const StagePlace& place : {StagePlace{2, 0}, StagePlace{-1, 0}, StagePlace{1, 1}}) {
    EXPECT_THAT(ErrorAfter([&](Plan* p) { p->stages[1] = place; }),
                HasSubstr("which does not exist [plan_c19]"));
  }
}

}  // namespace
}  // namespace mgc
