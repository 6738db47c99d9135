// Order and Memory on compiled plans: whole, they are proved; damaged, refused by name.

#include "graph/verify/order/order.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

Diagnostics Check(const Plan& plan) {
  Diagnostics findings;
  CheckOrder(plan, &findings);
  CheckMemory(plan, &findings);
  return findings;
}

class CompiledOrderTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(CompiledOrderTest, IsProved) {
  const Diagnostics findings = Check(CompilePlanCase(GetParam()));
  EXPECT_TRUE(findings.empty()) << findings.ToString();
}

INSTANTIATE_TEST_SUITE_P(Tiny, CompiledOrderTest, ::testing::ValuesIn(TinyPlanCases()),
                         [](const auto& info) { return info.param.name; });

// One way to damage a plan, and the label that must come of it.
struct Damage {
  std::string name;
  std::string label;
  std::function<void(Plan*)> apply;
};

std::vector<Action>& ActionsOf(Plan* plan, size_t c) { return plan->classes[c].train.compute; }
std::vector<Transfer>& TransfersOf(Plan* plan, size_t c) {
  return plan->classes[c].train.transfers;
}

Segment* FindSegment(Plan* plan, const std::string& name) {
  for (Segment& segment : plan->segments) {
    if (segment.name == name) return &segment;
  }
  return nullptr;
}

bool IsReceive(const Transfer& transfer) {
  return transfer.ref.kind == TransferKind::kRecvForward ||
         transfer.ref.kind == TransferKind::kRecvBackward;
}

void DropCredits(Plan* plan) {
  for (Transfer& transfer : TransfersOf(plan, 0)) {
    transfer.after.clear();
    transfer.after_transfers.clear();
  }
}

// Only what CheckPlan asks for: what is received.
void DropSendWaits(Plan* plan) {
  for (Action& action : ActionsOf(plan, 0)) {
    std::vector<TransferRef> kept;
    for (const TransferRef& ref : action.waits) {
      const bool receive =
          ref.kind == TransferKind::kRecvForward || ref.kind == TransferKind::kRecvBackward;
      if (receive) kept.push_back(ref);
    }
    action.waits = kept;
  }
}

// A receive of class 1 and the send behind it change places, anchors too.
void SwapNeighbours(Plan* plan) {
  std::vector<Transfer>& list = TransfersOf(plan, 1);
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    if (IsReceive(list[i]) || !IsReceive(list[i + 1])) continue;
    if (!list[i + 1].after_transfers.empty()) continue;
    std::swap(list[i], list[i + 1]);
    std::swap(list[i].anchor, list[i + 1].anchor);
    std::swap(list[i].issued, list[i + 1].issued);
    return;
  }
}

// Before the layer's backward has added the last micro-batch.
void ReduceTooEarly(Plan* plan) {
  std::vector<Call>& calls = plan->classes[0].chunks[0].last_backward;
  const auto reduces = [&](const Call& call) {
    return plan->segments[static_cast<size_t>(call.segment)].instrs[0].phase == Phase::kUpdate;
  };
  const auto first = std::find_if(calls.begin(), calls.end(), reduces);
  std::rotate(calls.begin(), first, first + 1);
}

void MoveFirstWaitToTheEnd(Plan* plan) {
  std::vector<Instr>& instrs = FindSegment(plan, "layer.forward")->instrs;
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (instrs[i].kind != InstrKind::kWait) continue;
    Instr wait = instrs[i];
    instrs.erase(instrs.begin() + static_cast<std::ptrdiff_t>(i));
    instrs.push_back(wait);
    return;
  }
}

// But those of collectives, whose overlaps no reader lets pass.
void PutTransientsAtZero(Plan* plan) {
  Segment* segment = FindSegment(plan, "layer.backward");
  std::set<int> moved;
  for (const Instr& instr : segment->instrs) {
    if (instr.kind != InstrKind::kStart) continue;
    moved.insert(instr.inputs.begin(), instr.inputs.end());
    moved.insert(instr.outputs.begin(), instr.outputs.end());
  }
  for (size_t s = 0; s < segment->slots.size(); ++s) {
    Slot& slot = segment->slots[s];
    if (slot.formal == 0 && moved.count(static_cast<int>(s)) == 0) slot.offset = 0;
  }
}

// The first two micro-batches of a stage have one frame.
void ShareAFrame(Plan* plan) {
  std::vector<Action>& actions = ActionsOf(plan, 0);
  const auto first = std::find_if(actions.begin(), actions.end(),
                                  [](const Action& action) { return action.frame >= 0; });
  const int64_t frame = first->frame;
  for (Action& action : actions) {
    const bool moved = action.ref.chunk == 0 && action.ref.micro_batch == 1;
    if (moved && action.frame >= 0) action.frame = frame;
  }
}

void UseTheOutboxOfBefore(Plan* plan) {
  std::vector<Action>& actions = ActionsOf(plan, 0);
  std::vector<const Action*> forward;
  for (Action& action : actions) {
    if (action.ref.kind != ActionKind::kForward || action.ref.chunk != 0) continue;
    if (!forward.empty() && forward.back()->output != action.output) {
      action.output = forward.back()->output;
      for (Transfer& transfer : TransfersOf(plan, 0)) {
        if (transfer.ref.kind == TransferKind::kSendForward && transfer.ref.chunk == 0 &&
            transfer.ref.micro_batch == action.ref.micro_batch) {
          transfer.address = action.output;
        }
      }
      return;
    }
    forward.push_back(&action);
  }
}

std::vector<Damage> Damages() {
  return {
      {"a_layer_is_left_out", "order_v1", [](Plan* p) { p->classes[0].chunks[1].forward.clear(); }},
      {"the_block_of_another_layer", "order_v1",
       [](Plan* p) { p->classes[0].chunks[1].backward[0].layer = 0; }},
      {"a_boundary_at_another_address", "order_v2",
       [](Plan* p) { TransfersOf(p, 1)[0].address += 64; }},
      {"the_update_of_one_class_exchanges_less", "order_v3",
       [](Plan* p) { p->classes[1].update.erase(p->classes[1].update.begin()); }},
      {"transfers_change_places", "order_v4", SwapNeighbours},
      {"an_anchor_far_too_late", "order_v4",
       [](Plan* p) { TransfersOf(p, 0)[0].issued += 1000000; }},
      {"the_last_backward_leaves_a_layer_out", "order_v5",
       [](Plan* p) {
         std::vector<Call>& calls = p->classes[0].chunks[0].last_backward;
         calls.erase(calls.begin());
       }},
      {"a_bucket_signalled_too_early", "order_v7", ReduceTooEarly},
      {"credits_dropped", "order_v6", DropCredits},
      {"waits_for_outboxes_dropped", "order_v6", DropSendWaits},
      {"an_outbox_reused_early", "order_v6", UseTheOutboxOfBefore},
      {"a_wait_too_late", "order_v7", MoveFirstWaitToTheEnd},
      {"reductions_not_waited_for", "order_v8",
       [](Plan* p) { p->classes[0].update[0].running = kAnyRunning; }},
      {"all_reductions_but_one_waited_for", "order_v8",
       [](Plan* p) { p->classes[0].update[0].running = 1; }},
      {"blocks_overlap", "memory_v1",
       [](Plan* p) { p->classes[0].blocks[1].param_base = p->classes[0].blocks[0].param_base; }},
      {"frames_overlap", "memory_v2", ShareAFrame},
      {"transients_overlap", "memory_v3", PutTransientsAtZero},
      {"peak_misstated", "memory_v4", [](Plan* p) { p->classes[1].memory.peak += 64; }},
      {"frames_misstated", "memory_v4", [](Plan* p) { p->classes[1].memory.frames -= 64; }},
  };
}

class DamagedOrderTest : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedOrderTest, IsRefused) {
  Plan plan = CompilePlanCase(TinyPlanCases().back());
  GetParam().apply(&plan);
  ASSERT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan);
  const Diagnostics findings = Check(plan);
  EXPECT_TRUE(findings.Has(GetParam().label)) << findings.ToString();
  if (!findings.empty()) std::cout << ToString(findings[0]) << "\n";
}

INSTANTIATE_TEST_SUITE_P(Ways, DamagedOrderTest, ::testing::ValuesIn(Damages()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
