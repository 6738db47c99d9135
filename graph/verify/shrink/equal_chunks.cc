#include "graph/verify/shrink/equal_chunks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "graph/verify/shrink/own_blocks.h"

namespace mgc {
namespace {

// A distance that is the same wherever it is met.
class SameDistance {
 public:
  // Whether it is `distance` here as it was before.
  bool Is(int64_t distance) {
    if (!known_.has_value()) known_ = distance;
    return *known_ == distance;
  }
  bool Differs(const SameDistance& other) const {
    return known_.has_value() && other.known_.has_value() && *known_ != *other.known_;
  }

 private:
  absl::optional<int64_t> known_;
};

// How far behind the other chunk's a chunk has what follows layer by layer.
struct Distances {
  SameDistance norm;
  SameDistance copies;

  bool GoOn(const Distances& before) const {
    return !norm.Differs(before.norm) && !copies.Differs(before.copies);
  }
};

// How far behind the other class' a class has its scratch, in training and in evaluation.
struct Scratch {
  std::array<SameDistance, 2> distances;
  bool in_parts = false;  // it is not as far behind everywhere

  bool Is(bool eval, int64_t distance) {
    const bool same = distances[eval ? 1 : 0].Is(distance);
    in_parts = in_parts || !same;
    return same;
  }
};

using CallList = std::vector<const Call*>;

CallList CallsOf(const std::vector<Call>& calls, absl::FunctionRef<bool(const Call&)> is_wanted) {
  CallList wanted;
  for (const Call& call : calls) {
    if (is_wanted(call)) wanted.push_back(&call);
  }
  return wanted;
}

CallList CallsOf(const std::vector<Call>& calls, const Chunk& chunk) {
  return CallsOf(calls, [&](const Call& call) {
    return call.layer >= chunk.first_layer && call.layer < chunk.first_layer + chunk.num_layers;
  });
}

bool SameScalars(const std::vector<NamedAddress>& a, const std::vector<NamedAddress>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedAddress& x, const NamedAddress& y) {
                      return x.name == y.name && x.address == y.address;
                    });
}

bool SameRanges(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Range& x, const Range& y) {
    return x.begin == y.begin && x.end == y.end;
  });
}

class ChunkPair {
 public:
  struct Place {
    const PlanClass& of;
    size_t chunk;
  };

  ChunkPair(const Plan& plan, const EqualLayers& layers, const Place& before, const Place& now,
            Scratch* scratch)
      : plan_(plan), layers_(layers), before_(before), now_(now), scratch_(*scratch) {}

  // Null when they differ.
  absl::optional<Distances> Compare() {
    const bool same = HasSameLayers() && HaveSameBlocks() && CallAlike();
    return same ? absl::make_optional(distances_) : absl::nullopt;
  }

 private:
  static const Chunk& ChunkOf(const Place& place, bool eval) {
    return (eval ? place.of.eval_chunks : place.of.chunks)[place.chunk];
  }
  // By layers.
  int Behind() const {
    return ChunkOf(now_, false).first_layer - ChunkOf(before_, false).first_layer;
  }

  bool HasSameLayers() const {
    const Chunk& now = ChunkOf(now_, false);
    const Chunk& before = ChunkOf(before_, false);
    for (const bool eval : {false, true}) {
      const Chunk& a = ChunkOf(before_, eval);
      const Chunk& b = ChunkOf(now_, eval);
      if (a.first_layer != before.first_layer || b.first_layer != now.first_layer ||
          a.num_layers != b.num_layers || a.num_layers <= 0 || a.frame_bytes != b.frame_bytes ||
          a.has_embedding || b.has_embedding || a.has_head || b.has_head) {
        return false;
      }
    }
    if (now.num_layers != ChunkOf(now_, true).num_layers) return false;
    for (int layer = before.first_layer + 1; layer < now.first_layer + now.num_layers; ++layer) {
      if (!layers_.Repeats(layer)) return false;
    }
    return Behind() >= now.num_layers;
  }

  // Null where it has none; nothing where it holds others' too.
  absl::optional<const HeldBlock*> OwnBlockOf(const PlanClass& of, int layer) const {
    const HeldBlock* own = FindHeld(plan_, of, "", layer);
    const bool more = std::any_of(of.blocks.begin(), of.blocks.end(), [&](const HeldBlock& held) {
      return held.layer == layer && &held != own;
    });
    return more ? absl::nullopt : absl::make_optional(own);
  }

  // Every layer that of its counterpart.
  bool HaveSameBlocks() const {
    const Chunk& chunk = ChunkOf(now_, false);
    for (int layer = chunk.first_layer; layer < chunk.first_layer + chunk.num_layers; ++layer) {
      const absl::optional<const HeldBlock*> before = OwnBlockOf(before_.of, layer - Behind());
      const absl::optional<const HeldBlock*> now = OwnBlockOf(now_.of, layer);
      if (!before.has_value() || !now.has_value()) return false;
      if (!HoldAlike(plan_, layers_, *before, *now)) return false;
    }
    return true;
  }

  bool CallAlike() {
    for (const bool eval : {false, true}) {
      const Chunk& before = ChunkOf(before_, eval);
      const Chunk& now = ChunkOf(now_, eval);
      for (size_t list = 0; list < kNumChunkLists; ++list) {
        const CallList calls = CallsOf(*ListsOf(now)[list], now);
        if (calls.size() != ListsOf(now)[list]->size()) return false;
        if (!AreAlike(CallsOf(*ListsOf(before)[list], before), calls, eval)) return false;
      }
      const auto& update_before = eval ? before_.of.eval_update : before_.of.update;
      const auto& update = eval ? now_.of.eval_update : now_.of.update;
      if (!AreAlike(CallsOf(update_before, before), CallsOf(update, now), eval)) return false;
    }
    return !ChunkOf(now_, false).forward.empty();
  }

  bool AreAlike(const CallList& before, const CallList& now, bool eval) {
    return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                      [&](const Call* a, const Call* b) { return IsAlike(*a, *b, eval); });
  }

  bool IsAlike(const Call& before, const Call& now, bool eval) {
    if (now.segment != before.segment || now.layer != before.layer + Behind()) return false;
    const std::vector<Formal>& formals = plan_.segments[static_cast<size_t>(now.segment)].formals;
    for (size_t f = 0; f < formals.size(); ++f) {
      const Binding& there = before.bindings[f];
      const Binding& here = now.bindings[f];
      const int64_t distance = here.offset - there.offset;
      if (here.base != there.base) return false;
      const bool alike = formals[f].region == Region::kTransient
                             ? scratch_.Is(eval, distance)
                             : IsBoundAlike(formals[f], before.layer, there, here);
      if (!alike) return false;
    }
    return true;
  }

  // `layer`: that of `there`.
  bool IsBoundAlike(const Formal& formal, int layer, const Binding& there, const Binding& here) {
    const int64_t distance = here.offset - there.offset;
    const bool own = formal.block.empty();
    if (formal.region == Region::kNorm) return distances_.norm.Is(distance);
    if (formal.region == Region::kCopies && own) return distances_.copies.Is(distance);
    if (!IsOfBlock(formal.region) || !own) return distance == 0;
    return LieAlike(FindHeld(plan_, before_.of, "", layer), there,
                    FindHeld(plan_, now_.of, "", layer + Behind()), here, formal.region);
  }

  const Plan& plan_;
  const EqualLayers& layers_;
  const Place before_;
  const Place now_;
  Scratch& scratch_;
  Distances distances_;
};

// What two classes' updates call of no layer.
bool StepCallsAlike(const PlanClass& a, const PlanClass& b, bool eval, Scratch* scratch) {
  const auto of_step = [](const Call& call) { return call.layer == kNoLayer; };
  const CallList before = CallsOf(eval ? a.eval_update : a.update, of_step);
  const CallList now = CallsOf(eval ? b.eval_update : b.update, of_step);
  const auto same = [](const Binding& x, const Binding& y) {
    return x.base == y.base && x.offset == y.offset;
  };
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [&](const Call* x, const Call* y) {
                      return x->segment == y->segment &&
                             scratch->Is(eval, y->bindings[0].offset - x->bindings[0].offset) &&
                             std::equal(x->bindings.begin() + 1, x->bindings.end(),
                                        y->bindings.begin() + 1, y->bindings.end(), same);
                    });
}

// What the plan says of two classes as a whole.
bool HaveSameMemory(const PlanClass& a, const PlanClass& b, Scratch* scratch) {
  return a.chunks.size() == b.chunks.size() && SameScalars(a.scalars, b.scalars) &&
         SameScalars(a.carried, b.carried) && SameScalars(a.reports, b.reports) &&
         SameScalars(a.eval_reports, b.eval_reports) && a.results == b.results &&
         SameRanges(a.zeroed, b.zeroed) && SameRanges(a.eval_zeroed, b.eval_zeroed) &&
         StepCallsAlike(a, b, /*eval=*/false, scratch) &&
         StepCallsAlike(a, b, /*eval=*/true, scratch);
}

// Of chunks that each may repeat the one before: whether they do and what lies elsewhere goes on.
std::vector<bool> GoingOn(const std::vector<absl::optional<Distances>>& pairs) {
  std::vector<bool> repeats(pairs.size(), false);
  for (size_t i = 1; i < pairs.size(); ++i) {
    repeats[i] = pairs[i].has_value() && (!repeats[i - 1] || pairs[i]->GoOn(*pairs[i - 1]));
  }
  return repeats;
}

}  // namespace

ChunkFlags RepeatedOnRank(const Plan& plan, const EqualLayers& layers) {
  ChunkFlags repeats;
  for (const PlanClass& c : plan.classes) {
    std::vector<absl::optional<Distances>> pairs(c.chunks.size());
    for (size_t chunk = 1; chunk < c.chunks.size(); ++chunk) {
      Scratch scratch;
      for (const bool eval : {false, true}) scratch.Is(eval, 0);
      pairs[chunk] = ChunkPair(plan, layers, {c, chunk - 1}, {c, chunk}, &scratch).Compare();
    }
    repeats.push_back(GoingOn(pairs));
  }
  return repeats;
}

ChunkFlags RepeatedAlongPipeline(const Plan& plan, const EqualLayers& layers) {
  ChunkFlags repeats;
  for (const PlanClass& c : plan.classes) repeats.emplace_back(c.chunks.size(), false);
  std::vector<std::vector<absl::optional<Distances>>> pairs(plan.classes.front().chunks.size());
  for (size_t chunk = 0; chunk < pairs.size(); ++chunk) pairs[chunk].resize(plan.classes.size());
  for (size_t c = 1; c < plan.classes.size(); ++c) {
    const PlanClass& before = plan.classes[c - 1];
    const PlanClass& now = plan.classes[c];
    Scratch scratch;
    if (now.chunks.size() != pairs.size() || !HaveSameMemory(before, now, &scratch)) continue;
    for (size_t chunk = 0; chunk < pairs.size(); ++chunk) {
      pairs[chunk][c] = ChunkPair(plan, layers, {before, chunk}, {now, chunk}, &scratch).Compare();
    }
    for (auto& of_chunk : pairs) {
      if (scratch.in_parts) of_chunk[c].reset();
    }
  }
  for (size_t chunk = 0; chunk < pairs.size(); ++chunk) {
    const std::vector<bool> along = GoingOn(pairs[chunk]);
    for (size_t c = 0; c < along.size(); ++c) {
      if (along[c]) repeats[c][chunk] = true;  // it has as many chunks as the first class
    }
  }
  return repeats;
}

}  // namespace mgc
