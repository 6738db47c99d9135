#include "graph/verify/shrink/leave_out.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/verify/shrink/equal_calls.h"
#include "graph/verify/shrink/equal_chunks.h"
#include "graph/verify/shrink/equal_layers.h"
#include "graph/verify/shrink/keep_issued.h"

namespace mgc {
namespace {

bool IsIn(const std::vector<LayerGap>& gaps, int layer) {
  return std::any_of(gaps.begin(), gaps.end(),
                     [&](const LayerGap& gap) { return layer >= gap.first && layer <= gap.last; });
}

// All but the first two and the last of each run of those that repeat others.
std::vector<bool> ButFewOf(const std::vector<bool>& repeats) {
  std::vector<bool> others(repeats.size(), false);
  for (const LayerGap& gap : GapsOf(0, repeats)) {
    for (int i = gap.first; i <= gap.last; ++i) others[static_cast<size_t>(i)] = true;
  }
  return others;
}

// By class and chunk: whether it keeps no layers, since others of its rank or of its row of the
// pipeline do. Of chunks that repeat each other, however they hang together, the first one of the
// first class begins a run of both and stays.
ChunkFlags OnlyPassedThrough(const Plan& plan, const EqualLayers& layers) {
  ChunkFlags passed;
  for (const std::vector<bool>& repeats : RepeatedOnRank(plan, layers)) {
    passed.push_back(ButFewOf(repeats));
  }
  const ChunkFlags along = RepeatedAlongPipeline(plan, layers);
  for (size_t chunk = 0; chunk < along.front().size(); ++chunk) {
    std::vector<bool> repeats;
    for (const std::vector<bool>& of_class : along) {
      repeats.push_back(chunk < of_class.size() && of_class[chunk]);
    }
    const std::vector<bool> others = ButFewOf(repeats);
    for (size_t c = 0; c < passed.size(); ++c) {
      if (others[c]) passed[c][chunk] = true;
    }
  }
  return passed;
}

int FormalOf(const Segment& segment, Region region) {
  const auto found = std::find_if(segment.formals.begin(), segment.formals.end(),
                                  [&](const Formal& formal) { return formal.region == region; });
  return found == segment.formals.end() ? -1 : static_cast<int>(found - segment.formals.begin());
}

class LeavingOut {
 public:
  explicit LeavingOut(const Plan& plan)
      : plan_(plan), layers_(plan.model), passed_(OnlyPassedThrough(plan, layers_)) {}

  Plan Run() {
    std::vector<LayerGap> all;
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      std::vector<LayerGap>& of_class = gaps_.emplace_back();
      for (size_t chunk = 0; chunk < plan_.classes[c].chunks.size(); ++chunk) {
        const std::vector<LayerGap> gaps = GapsOfChunk(c, chunk);
        of_class.insert(of_class.end(), gaps.begin(), gaps.end());
      }
      all.insert(all.end(), of_class.begin(), of_class.end());
    }
    Plan few = plan_;
    if (all.empty()) return few;
    few.model = layers_.WithoutLayers(all);
    for (size_t c = 0; c < few.classes.size(); ++c) {
      if (!gaps_[c].empty()) Shorten(gaps_[c], passed_[c], &few.classes[c]);
    }
    for (Segment& link : links_) few.segments.push_back(std::move(link));
    return few;
  }

 private:
  std::vector<LayerGap> GapsOfChunk(size_t c, size_t chunk) const {
    const Chunk& of = plan_.classes[c].chunks[chunk];
    if (passed_[c][chunk]) return {{of.first_layer, of.first_layer + of.num_layers - 1}};
    return GapsOf(of.first_layer, EqualCalls(plan_, plan_.classes[c], chunk, layers_).Repeats());
  }

  // `passed`, by chunk: the gaps are all its layers.
  void Shorten(const std::vector<LayerGap>& gaps, const std::vector<bool>& passed, PlanClass* c) {
    KeepIssued(
        plan_, [&](const Call& call, int /*start*/) { return !IsIn(gaps, call.layer); }, c);
    AddZeros(gaps, c);
    for (std::vector<Chunk>* chunks : {&c->chunks, &c->eval_chunks}) {
      for (size_t i = 0; i < chunks->size(); ++i) {
        Chunk& chunk = (*chunks)[i];
        const auto shortened = [&](const std::vector<Call>& calls, Region from, Region to) {
          return passed[i] ? Through(calls, from, to) : Linked(calls, gaps, to);
        };
        chunk.forward = shortened(chunk.forward, Region::kInput, Region::kOutput);
        for (std::vector<Call>* calls : {&chunk.backward, &chunk.last_backward}) {
          *calls = shortened(*calls, Region::kGradInput, Region::kGradOutput);
        }
        Erase(gaps, &chunk.prepare);
      }
    }
    Erase(gaps, &c->update);
    Erase(gaps, &c->eval_update);
    c->blocks.erase(std::remove_if(c->blocks.begin(), c->blocks.end(),
                                   [&](const HeldBlock& held) { return IsIn(gaps, held.layer); }),
                    c->blocks.end());
  }

  static void Erase(const std::vector<LayerGap>& gaps, std::vector<Call>* calls) {
    calls->erase(std::remove_if(calls->begin(), calls->end(),
                                [&](const Call& call) { return IsIn(gaps, call.layer); }),
                 calls->end());
  }

  // The calls without those of gaps; what leaves the last one before a gap, in memory of `region`,
  // is taken to where the gap's last one would leave it.
  std::vector<Call> Linked(const std::vector<Call>& calls, const std::vector<LayerGap>& gaps,
                           Region region) {
    std::vector<Call> linked;
    const Call* from = nullptr;
    const Call* to = nullptr;
    const auto link = [&] {
      if (from != nullptr && to != nullptr) {
        AddLink(*from, BindingOf(*from, region), BindingOf(*to, region), region, &linked);
      }
      to = nullptr;
    };
    for (const Call& call : calls) {
      const bool leaves = FormalOf(plan_.segments[static_cast<size_t>(call.segment)], region) >= 0;
      if (&call != &calls.front() && IsIn(gaps, call.layer)) {
        if (leaves) to = &call;
        continue;
      }
      link();
      linked.push_back(call);
      if (leaves) from = &call;
    }
    link();
    return linked;
  }

  // Instead of all the calls: what the first one takes, in memory of `from`, is taken to where the
  // last one leaves something, in memory of `to`.
  std::vector<Call> Through(const std::vector<Call>& calls, Region from, Region to) {
    const auto has = [&](Region region) {
      return [this, region](const Call& call) {
        return FormalOf(plan_.segments[static_cast<size_t>(call.segment)], region) >= 0;
      };
    };
    const auto first = std::find_if(calls.begin(), calls.end(), has(from));
    const auto last = std::find_if(calls.rbegin(), calls.rend(), has(to));
    std::vector<Call> through;
    if (first != calls.end() && last != calls.rend()) {
      AddLink(*last, BindingOf(*first, from), BindingOf(*last, to), to, &through);
    }
    return through;
  }

  const Binding& BindingOf(const Call& call, Region region) const {
    const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
    return call.bindings[static_cast<size_t>(FormalOf(segment, region))];
  }

  // Takes what `from` leaves in memory of `region` from `begin` to `end`.
  void AddLink(const Call& from, const Binding& begin, const Binding& end, Region region,
               std::vector<Call>* calls) {
    if (begin.base == end.base && begin.offset == end.offset) return;
    const Segment& segment = plan_.segments[static_cast<size_t>(from.segment)];
    const int formal = FormalOf(segment, region);
    const int first = static_cast<int>(plan_.segments.size());
    const auto [it, is_new] =
        link_of_.try_emplace({from.segment, region}, first + static_cast<int>(links_.size()));
    if (is_new) links_.push_back(LinkOf(segment, region, formal));
    calls->push_back({it->second, from.layer, {from.bindings[0], begin, end}, kAnyRunning});
  }

  // Copies all that a segment writes behind one of its formals.
  static Segment LinkOf(const Segment& segment, Region region, int formal) {
    const bool forward = region == Region::kOutput;
    Segment link;
    link.name = absl::StrCat(segment.name, ".link");
    link.formals = {Formal{Region::kTransient, ""},
                    Formal{forward ? Region::kInput : Region::kGradInput, ""}, Formal{region, ""}};
    std::set<int64_t> offsets;
    for (const Instr& instr : segment.instrs) {
      for (int number : instr.outputs) {
        Slot slot = segment.slots[static_cast<size_t>(number)];
        if (slot.formal != formal || !offsets.insert(slot.offset).second) continue;
        Instr copy;
        copy.op = FindOp("reshard");
        copy.phase = forward ? Phase::kForward : Phase::kBackward;
        copy.loc = instr.loc;
        copy.origin = instr.origin;
        copy.inputs = {static_cast<int>(link.slots.size())};
        copy.outputs = {static_cast<int>(link.slots.size()) + 1};
        slot.formal = 1;
        link.slots.push_back(slot);
        slot.formal = 2;
        link.slots.push_back(std::move(slot));
        link.instrs.push_back(std::move(copy));
      }
    }
    return link;
  }

  // The entries of the norm that a gap's layers would make: they add nothing.
  void AddZeros(const std::vector<LayerGap>& gaps, PlanClass* c) const {
    for (const Call& call : c->update) {
      if (!IsIn(gaps, call.layer)) continue;
      const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
      for (const Slot& slot : segment.slots) {
        const size_t formal = static_cast<size_t>(slot.formal);
        if (segment.formals[formal].region != Region::kNorm) continue;
        const int64_t begin = call.bindings[formal].offset + slot.offset;
        c->zeroed.push_back({begin, begin + slot.bytes});
      }
    }
  }

  const Plan& plan_;
  const EqualLayers layers_;
  const ChunkFlags passed_;
  std::vector<std::vector<LayerGap>> gaps_;        // by class
  std::map<std::pair<int, Region>, int> link_of_;  // by segment and region
  std::vector<Segment> links_;
};

}  // namespace

Plan WithoutRepeatedLayers(const Plan& plan) { return LeavingOut(plan).Run(); }

}  // namespace mgc
