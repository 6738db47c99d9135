#include "tests/plan_forms/rewritten_plans.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace mgc {
namespace {

// With every wait right behind its start.
void WaitAtOnce(Segment* segment) {
  std::vector<Instr> instrs;
  for (const Instr& instr : segment->instrs) {
    if (instr.kind == InstrKind::kWait) continue;
    instrs.push_back(instr);
    for (const Instr& wait : segment->instrs) {
      const bool waits = wait.kind == InstrKind::kWait && wait.collective == instr.collective;
      if (waits && instr.kind == InstrKind::kStart) instrs.push_back(wait);
    }
  }
  segment->instrs = std::move(instrs);
}

// `first`, and behind it `second`.
Segment Joined(const Segment& first, const Segment& second) {
  Segment joined = first;
  joined.name += " " + second.name;
  joined.formals.insert(joined.formals.end(), second.formals.begin(), second.formals.end());
  for (Slot slot : second.slots) {
    slot.formal += static_cast<int>(first.formals.size());
    joined.slots.push_back(std::move(slot));
  }
  const auto moved = [&first](int slot) { return slot + static_cast<int>(first.slots.size()); };
  for (Instr instr : second.instrs) {
    std::transform(instr.inputs.begin(), instr.inputs.end(), instr.inputs.begin(), moved);
    std::transform(instr.outputs.begin(), instr.outputs.end(), instr.outputs.begin(), moved);
    if (instr.collective >= 0) instr.collective += first.num_collectives;
    joined.instrs.push_back(std::move(instr));
  }
  joined.num_collectives += second.num_collectives;
  return joined;
}

class LayerRunner {
 public:
  explicit LayerRunner(Plan plan) : plan_(std::move(plan)) {}

  Plan Run() && {
    for (PlanClass& plan_class : plan_.classes) {
      const std::vector<Chunk> before = plan_class.chunks;
      for (Chunk& chunk : plan_class.chunks) RunAgain(&chunk);
      for (Transfer& transfer : plan_class.train.transfers) {
        MoveBehind(before, plan_class.chunks, &transfer);
      }
    }
    return std::move(plan_);
  }

 private:
  void RunAgain(Chunk* chunk) {
    const std::vector<Call> backward = chunk->backward;
    const auto is_backward = [&backward](const Call& call) {
      return std::any_of(backward.begin(), backward.end(), [&call](const Call& other) {
        return other.segment == call.segment && other.layer == call.layer;
      });
    };
    for (std::vector<Call>* calls : {&chunk->backward, &chunk->last_backward}) {
      for (Call& call : *calls) {
        const auto forward = std::find_if(
            chunk->forward.begin(), chunk->forward.end(),
            [&call](const Call& other) { return other.layer == call.layer && call.layer >= 0; });
        const bool in_layer = call.layer < plan_.model.num_layers();
        if (forward == chunk->forward.end() || !in_layer || !is_backward(call)) continue;
        call.segment = SegmentOf(forward->segment, call.segment);
        call.bindings.insert(call.bindings.begin(), forward->bindings.begin(),
                             forward->bindings.end());
      }
    }
  }

  int CollectivesOf(const Call& call) const {
    return plan_.segments[static_cast<size_t>(call.segment)].num_collectives;
  }

  // A transfer that stood behind so many collectives of a backward stands behind those, too, that
  // its layers run again up to there.
  void MoveBehind(const std::vector<Chunk>& before, const std::vector<Chunk>& after,
                  Transfer* transfer) const {
    const ActionRef& anchor = transfer->anchor;
    if (anchor.kind != ActionKind::kBackward) return;
    const size_t chunk = static_cast<size_t>(anchor.chunk);
    const size_t list = ListOf(before[chunk], anchor, plan_.num_micro_batches);
    const std::vector<Call>& old_calls = *ListsOf(before[chunk])[list];
    const std::vector<Call>& calls = *ListsOf(after[chunk])[list];
    int seen = 0, added = 0;
    for (size_t i = 0; i < calls.size() && seen < transfer->issued; ++i) {
      added += CollectivesOf(calls[i]) - CollectivesOf(old_calls[i]);
      seen += CollectivesOf(old_calls[i]);
    }
    transfer->issued += added;
  }

  int SegmentOf(int forward, int backward) {
    const int next = static_cast<int>(plan_.segments.size());
    const auto [known, is_new] = joined_.emplace(std::make_pair(forward, backward), next);
    if (is_new) {
      plan_.segments.push_back(Joined(plan_.segments[static_cast<size_t>(forward)],
                                      plan_.segments[static_cast<size_t>(backward)]));
    }
    return known->second;
  }

  Plan plan_;
  std::map<std::pair<int, int>, int> joined_;  // by the segments of forward and backward
};

}  // namespace

Plan OneAfterAnother(Plan plan) {
  for (Segment& segment : plan.segments) WaitAtOnce(&segment);
  for (PlanClass& plan_class : plan.classes) {
    for (Chunk& chunk : plan_class.chunks) {
      const auto waits = [](const Call& call) { return call.running != kAnyRunning; };
      const bool any = std::any_of(chunk.forward.begin(), chunk.forward.end(), waits);
      for (Call& call : chunk.forward) call.running = kAnyRunning;
      if (any) chunk.forward.front().running = 0;
      const std::vector<Call> reductions = ReductionsOf(chunk);
      if (reductions.empty()) continue;
      chunk.last_backward = chunk.backward;
      chunk.last_backward.insert(chunk.last_backward.end(), reductions.begin(), reductions.end());
    }
  }
  return plan;
}

Plan WithLayersRunAgain(Plan plan) { return LayerRunner(std::move(plan)).Run(); }

}  // namespace mgc
