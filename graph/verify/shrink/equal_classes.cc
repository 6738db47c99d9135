#include "graph/verify/shrink/equal_classes.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/types/optional.h"
#include "graph/verify/shrink/same_distance.h"

namespace mgc {
namespace {

// How far behind the other class' a class has what may lie elsewhere.
struct Distances {
  std::array<SameDistance, 2> scratch;  // of training, of evaluation
  std::vector<SameDistance> norm;       // by chunk
};

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

class ClassPair {
 public:
  ClassPair(const Plan& plan, const EqualLayers& layers, const PlanClass& before,
            const PlanClass& now)
      : plan_(plan), layers_(layers), before_(before), now_(now) {}

  // Null when they differ.
  absl::optional<Distances> Compare() {
    distances_.norm.resize(before_.chunks.size());
    const bool same = HaveSameMemory() && HaveNextLayers() && HaveSameBlocks() && CallAlike();
    return same ? absl::optional<Distances>(distances_) : absl::nullopt;
  }

 private:
  bool HaveSameMemory() const {
    return SameScalars(before_.scalars, now_.scalars) &&
           SameScalars(before_.carried, now_.carried) &&
           SameScalars(before_.reports, now_.reports) &&
           SameScalars(before_.eval_reports, now_.eval_reports) &&
           before_.results == now_.results && SameRanges(before_.zeroed, now_.zeroed) &&
           SameRanges(before_.eval_zeroed, now_.eval_zeroed);
  }

  bool HaveNextLayers() const {
    const auto next = [](const Chunk& a, const Chunk& b) {
      return b.stage == a.stage + 1 && b.num_layers == a.num_layers && a.num_layers > 0 &&
             b.first_layer == a.first_layer + a.num_layers && b.frame_bytes == a.frame_bytes &&
             !a.has_embedding && !b.has_embedding && !a.has_head && !b.has_head;
    };
    const auto all_next = [&](const std::vector<Chunk>& a, const std::vector<Chunk>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), next);
    };
    const auto repeats = [&](const Chunk& chunk) {
      for (int layer = 0; layer < chunk.num_layers; ++layer) {
        if (!layers_.Repeats(chunk.first_layer + layer)) return false;
      }
      return true;
    };
    const auto same_layers = [](const Chunk& a, const Chunk& b) {
      return a.first_layer == b.first_layer && a.num_layers == b.num_layers;
    };
    return all_next(before_.chunks, now_.chunks) &&
           all_next(before_.eval_chunks, now_.eval_chunks) &&
           std::equal(now_.chunks.begin(), now_.chunks.end(), now_.eval_chunks.begin(),
                      now_.eval_chunks.end(), same_layers) &&
           std::all_of(now_.chunks.begin(), now_.chunks.end(), repeats);
  }

  // Which of the other class' chunks holds `layer`; -1: none.
  int ChunkOf(int layer) const {
    for (size_t chunk = 0; chunk < before_.chunks.size(); ++chunk) {
      const Chunk& held = before_.chunks[chunk];
      if (layer >= held.first_layer && layer < held.first_layer + held.num_layers) {
        return static_cast<int>(chunk);
      }
    }
    return -1;
  }

  // Whether `now` is to this class what `before` is to the other.
  bool IsCounterpart(int before, int now) const {
    const int chunk = ChunkOf(before);
    return chunk >= 0 && now == before + before_.chunks[static_cast<size_t>(chunk)].num_layers;
  }

  // At the same addresses, and nothing in them is of another layer.
  bool HaveSameBlocks() const {
    const auto same = [&](const HeldBlock& a, const HeldBlock& b) {
      const ParamBlock& block = plan_.blocks[static_cast<size_t>(b.block)];
      return a.block == b.block && a.owner == b.owner && IsCounterpart(a.layer, b.layer) &&
             a.param_base == b.param_base && a.grad_base == b.grad_base &&
             a.state_base == b.state_base &&
             std::all_of(block.entries.begin(), block.entries.end(), [&](const ParamEntry& entry) {
               const ValueId param = plan_.model.FindValue(NameForLayer(entry.name, b.layer));
               return param != kNone && layers_.Owns(b.layer, param);
             });
    };
    return std::equal(before_.blocks.begin(), before_.blocks.end(), now_.blocks.begin(),
                      now_.blocks.end(), same);
  }

  bool CallAlike() {
    for (const bool eval : {false, true}) {
      const std::vector<Chunk>& before = eval ? before_.eval_chunks : before_.chunks;
      const std::vector<Chunk>& now = eval ? now_.eval_chunks : now_.chunks;
      for (size_t chunk = 0; chunk < now.size(); ++chunk) {
        for (size_t list = 0; list < kNumChunkLists; ++list) {
          const std::vector<Call>& calls = *ListsOf(now[chunk])[list];
          const bool of_layers = std::all_of(calls.begin(), calls.end(), [&](const Call& call) {
            return call.layer >= now[chunk].first_layer &&
                   call.layer < now[chunk].first_layer + now[chunk].num_layers;
          });
          if (!of_layers || !AreAlike(*ListsOf(before[chunk])[list], calls, eval)) return false;
        }
      }
    }
    return AreAlike(before_.update, now_.update, /*eval=*/false) &&
           AreAlike(before_.eval_update, now_.eval_update, /*eval=*/true);
  }

  bool AreAlike(const std::vector<Call>& before, const std::vector<Call>& now, bool eval) {
    return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                      [&](const Call& a, const Call& b) { return IsAlike(a, b, eval); });
  }

  bool IsAlike(const Call& before, const Call& now, bool eval) {
    const bool of_step = before.layer == kNoLayer && now.layer == kNoLayer;
    if (!of_step && !IsCounterpart(before.layer, now.layer)) return false;
    if (before.segment != now.segment || before.running != now.running) return false;
    const std::vector<Formal>& formals = plan_.segments[static_cast<size_t>(now.segment)].formals;
    for (size_t formal = 0; formal < formals.size(); ++formal) {
      const Binding& there = before.bindings[formal];
      const Binding& here = now.bindings[formal];
      if (there.base != here.base) return false;
      const int64_t distance = here.offset - there.offset;
      const Region region = formals[formal].region;
      if (region == Region::kTransient) {
        if (!distances_.scratch[eval ? 1 : 0].Is(distance)) return false;
      } else if (region == Region::kNorm && !of_step) {
        const size_t chunk = static_cast<size_t>(ChunkOf(before.layer));
        if (!distances_.norm[chunk].Is(distance)) return false;
      } else if (distance != 0) {
        return false;
      }
    }
    return true;
  }

  const Plan& plan_;
  const EqualLayers& layers_;
  const PlanClass& before_;
  const PlanClass& now_;
  Distances distances_;
};

// Whether the entries of the norm go on as far apart as they did.
bool GoOn(const Distances& before, const Distances& now) {
  return std::equal(before.norm.begin(), before.norm.end(), now.norm.begin(), now.norm.end(),
                    [](const SameDistance& a, const SameDistance& b) { return !a.Differs(b); });
}

}  // namespace

std::vector<bool> RepeatedClasses(const Plan& plan, const EqualLayers& layers) {
  std::vector<bool> repeats(plan.classes.size(), false);
  absl::optional<Distances> before;
  for (size_t c = 1; c < plan.classes.size(); ++c) {
    const absl::optional<Distances> now =
        ClassPair(plan, layers, plan.classes[c - 1], plan.classes[c]).Compare();
    repeats[c] = now.has_value() && (!before.has_value() || GoOn(*before, *now));
    before = repeats[c] ? now : absl::nullopt;
  }
  return repeats;
}

}  // namespace mgc
