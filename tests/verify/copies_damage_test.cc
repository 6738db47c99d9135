// Working copies that are not made, made too late, of something else, or laid where they must not
// be; copies that are read for more than they are; and calls that do not wait for what runs beside
// them. Each is refused, by name.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::vector<Action>& ActionsOf(Plan* plan) { return plan->classes[0].train.compute; }
Chunk& ChunkOf(Plan* plan) { return plan->classes[0].chunks[0]; }

size_t FormalOf(const Segment& segment, Region region) {
  const auto found = std::find_if(segment.formals.begin(), segment.formals.end(),
                                  [&](const Formal& formal) { return formal.region == region; });
  EXPECT_NE(found, segment.formals.end());
  return static_cast<size_t>(found - segment.formals.begin());
}

// Where a call has the copies of its layer.
int64_t& CopiesOf(Plan* plan, Call* call) {
  const Segment& segment = plan->segments[static_cast<size_t>(call->segment)];
  return call->bindings[FormalOf(segment, Region::kCopies)].offset;
}

bool UsesCopies(const Plan& plan, const Call& call) {
  const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
  return std::any_of(segment.formals.begin(), segment.formals.end(),
                     [](const Formal& formal) { return formal.region == Region::kCopies; });
}

Call& CallFor(std::vector<Call>* calls, int layer) {
  return *std::find_if(calls->begin(), calls->end(),
                       [&](const Call& call) { return call.layer == layer; });
}

// The first instruction of a segment that reads a working copy, and which operand that is.
struct Reader {
  size_t instr = 0;
  size_t operand = 0;
};
Reader ReaderOfCopy(const Segment& segment) {
  const int copies = static_cast<int>(FormalOf(segment, Region::kCopies));
  for (size_t i = 0; i < segment.instrs.size(); ++i) {
    const std::vector<int>& inputs = segment.instrs[i].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (segment.slots[static_cast<size_t>(inputs[k])].formal == copies) return {i, k};
    }
  }
  ADD_FAILURE() << segment.name << " reads no working copy";
  return {};
}

// Puts a cast to `dtype` before instruction `at`; the transient slot that it makes.
int PutCast(const Plan& plan, Segment* segment, size_t at, int from, DType dtype) {
  Slot made = segment->slots[static_cast<size_t>(from)];
  made.type.dtype = dtype;
  made.formal = 0;
  made.offset = AlignUp(segment->transient_bytes);
  made.bytes = LocalElements(made.type, made.sharding, plan.mesh) * SizeOf(dtype);
  segment->transient_bytes = made.offset + made.bytes;
  segment->slots.push_back(made);
  Instr cast;
  cast.op = FindOp("cast");
  cast.attrs.Set(kDTypeAttr, std::string(NameOf(dtype)));
  cast.inputs = {from};
  cast.outputs = {static_cast<int>(segment->slots.size()) - 1};
  cast.phase = segment->instrs[at].phase;
  segment->instrs.insert(segment->instrs.begin() + static_cast<int64_t>(at), cast);
  return cast.outputs[0];
}

const PlanDamage kDamages[] = {
    {"NeverMade", "plan_c11", [](Plan* p) { ActionsOf(p).erase(ActionsOf(p).begin()); }},
    {"NeverMadeInAnEvaluation", "plan_c11",
     [](Plan* p) {
       std::vector<Action>& actions = p->classes[0].eval.compute;
       actions.erase(actions.begin());
     }},
    {"MadeBehindTheFirstForward", "plan_c11",
     [](Plan* p) { std::swap(ActionsOf(p)[0], ActionsOf(p)[1]); }},
    {"MadeForALaterMicroBatch", "plan_c11", [](Plan* p) { ActionsOf(p)[0].ref.micro_batch = 1; }},
    {"MadeTwice", "plan_c11",
     [](Plan* p) { ActionsOf(p).insert(ActionsOf(p).begin(), ActionsOf(p)[0]); }},
    {"OneLayerLeftOut", "memory_v3",
     [](Plan* p) { ChunkOf(p).prepare.erase(ChunkOf(p).prepare.begin() + 1); }},
    {"OneLayerMadeTwice", "order_v1",
     [](Plan* p) { ChunkOf(p).prepare.push_back(ChunkOf(p).prepare[0]); }},
    {"OneCopyLeftOut", "memory_v3", [](Plan* p) { Remove(&SegmentOf(p, "layer.prepare"), 0); }},
    {"OfAnotherParameter", "meaning",
     [](Plan* p) {
       // Two biases of one size.
       Segment& segment = SegmentOf(p, "layer.prepare");
       const int first = SlotOf(segment, "attention.out.bias.bf16");
       const int second = SlotOf(segment, "mlp.down.bias.bf16");
       std::swap(segment.slots[static_cast<size_t>(first)].offset,
                 segment.slots[static_cast<size_t>(second)].offset);
     }},
    {"ReadOfAnotherLayer", "memory",
     [](Plan* p) {
       std::vector<Call>& forward = ChunkOf(p).forward;
       CopiesOf(p, &CallFor(&forward, 1)) = CopiesOf(p, &CallFor(&forward, 0));
     }},
    {"OfTwoLayersInOnePlace", "memory",
     [](Plan* p) {
       const int64_t place = CopiesOf(p, &CallFor(&ChunkOf(p).prepare, 0));
       for (std::vector<Call>* calls : ListsOf(&ChunkOf(p))) {
         for (Call& call : *calls) {
           if (call.layer == 1 && UsesCopies(*p, call)) CopiesOf(p, &call) = place;
         }
       }
     }},
    {"OverTheParameters", "memory_v1",
     [](Plan* p) {
       for (std::vector<Call>* calls : ListsOf(&ChunkOf(p))) {
         for (Call& call : *calls) {
           if (call.layer == 0 && UsesCopies(*p, call)) {
             CopiesOf(p, &call) = p->classes[0].blocks[0].param_base;
           }
         }
       }
     }},
    {"FewerBytesStated", "memory_v4", [](Plan* p) { p->classes[0].memory.copies -= 64; }},
    {"WidenedAgain", "placement_v14",
     [](Plan* p) {
       Segment& segment = SegmentOf(p, "layer.forward");
       const Reader reader = ReaderOfCopy(segment);
       const int copy = segment.instrs[reader.instr].inputs[reader.operand];
       const int wide = PutCast(*p, &segment, reader.instr, copy, DType::kF32);
       const int narrow = PutCast(*p, &segment, reader.instr + 1, wide, DType::kBF16);
       segment.instrs[reader.instr + 2].inputs[reader.operand] = narrow;
       p->classes[0].memory.peak += int64_t{1} << 24;
     }},
};

class CopiesDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(CopiesDamageTest, IsRefused) {
  Plan plan = CompileTiny("bf16");
  ASSERT_EQ(FoundIn(plan), "");
  ASSERT_EQ(ActionsOf(&plan)[0].ref.kind, ActionKind::kPrepare);
  GetParam().apply(&plan);
  EXPECT_THAT(FoundIn(plan), HasSubstr(GetParam().label));
}

// --- What calls wait for: dp2_zero gathers copies beside forward, reduces gradients beside
// backward.

// The calls of the first forward that wait.
std::vector<Call*> WaitingCalls(Plan* plan) {
  std::vector<Call*> waiting;
  for (Call& call : ChunkOf(plan).forward) {
    if (call.running != kAnyRunning) waiting.push_back(&call);
  }
  return waiting;
}

const PlanDamage kWaitDamages[] = {
    {"ForwardWaitsForNone", "order_v7", [](Plan* p) { WaitingCalls(p)[0]->running = kAnyRunning; }},
    {"ForwardWaitsForOneLess", "order_v7", [](Plan* p) { ++WaitingCalls(p)[1]->running; }},
    {"ForwardWaitsForTheCopiesOfTheLayerBelow", "order_v7",
     [](Plan* p) { WaitingCalls(p)[1]->running = WaitingCalls(p)[0]->running; }},
    {"TheLastForwardWaitsForNone", "order_v7",
     [](Plan* p) { WaitingCalls(p).back()->running = kAnyRunning; }},
    {"UpdateWaitsForNone", "order_v8",
     [](Plan* p) { p->classes[0].update[0].running = kAnyRunning; }},
    {"UpdateWaitsForAllButOne", "order_v8", [](Plan* p) { p->classes[0].update[0].running = 1; }},
    {"TheLastCallOfTheUpdateWaits", "order_v7",
     [](Plan* p) {
       std::vector<Call>& update = p->classes[0].update;
       std::swap(update.front().running, update.back().running);
     }},
    {"ReducedBeforeTheLayersBackward", "order_v7",
     [](Plan* p) { std::swap(ChunkOf(p).last_backward[0], ChunkOf(p).last_backward[1]); }},
    {"NeverReduced", "placement",
     [](Plan* p) {
       ChunkOf(p).last_backward.erase(ChunkOf(p).last_backward.begin() + 1);
       p->classes[0].update[0].running = 0;
     }},
    {"ReducedTwice", "order_v1",
     [](Plan* p) {
       std::vector<Call>& calls = ChunkOf(p).last_backward;
       calls.insert(calls.begin() + 1, Call(calls[1]));
     }},
    {"TheLastBackwardLeavesALayerOut", "order_v5",
     [](Plan* p) { ChunkOf(p).last_backward.erase(ChunkOf(p).last_backward.begin()); }},
    {"TheLastBackwardIsBoundElsewhere", "order_v5",
     [](Plan* p) { ChunkOf(p).last_backward[0].bindings[0].offset -= 64; }},
};

class WaitsDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(WaitsDamageTest, IsRefused) {
  Plan plan = CompileTiny("dp2_zero");
  ASSERT_EQ(FoundIn(plan), "");
  ASSERT_GE(WaitingCalls(&plan).size(), 3u);
  GetParam().apply(&plan);
  EXPECT_THAT(FoundIn(plan), HasSubstr(GetParam().label));
}

INSTANTIATE_TEST_SUITE_P(All, WaitsDamageTest, testing::ValuesIn(kWaitDamages),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(All, CopiesDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
