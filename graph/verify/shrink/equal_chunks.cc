#include "graph/verify/shrink/equal_chunks.h"

#include <algorithm>
#include <cstddef>

#include "absl/types/optional.h"
#include "graph/verify/shrink/same_distance.h"

namespace mgc {
namespace {

// How far behind the other chunk's a chunk has what follows layer by layer.
struct Distances {
  SameDistance norm;
  SameDistance copies;
};

class ChunkPair {
 public:
  // Chunks number `chunk` - 1 and `chunk`.
  ChunkPair(const Plan& plan, const PlanClass& rank_class, const EqualLayers& layers, size_t chunk)
      : plan_(plan),
        class_(rank_class),
        layers_(layers),
        number_(chunk),
        before_(rank_class.chunks[chunk - 1]),
        now_(rank_class.chunks[chunk]) {}

  // Null when they differ.
  absl::optional<Distances> Compare() {
    const bool same = HasSameLayers() && HaveSameBlocks() && CallAlike();
    return same ? absl::optional<Distances>(distances_) : absl::nullopt;
  }

 private:
  bool HasSameLayers() const {
    const Chunk& eval_before = class_.eval_chunks[number_ - 1];
    const Chunk& eval_now = class_.eval_chunks[number_];
    const auto same = [](const Chunk& a, const Chunk& b) {
      return a.first_layer == b.first_layer && a.num_layers == b.num_layers;
    };
    if (now_.num_layers <= 0 || now_.num_layers != before_.num_layers ||
        now_.frame_bytes != before_.frame_bytes ||
        eval_now.frame_bytes != eval_before.frame_bytes || !same(now_, eval_now) ||
        !same(before_, eval_before)) {
      return false;
    }
    for (const Chunk* chunk : {&before_, &now_}) {
      if (chunk->has_embedding || chunk->has_head) return false;
    }
    for (int layer = before_.first_layer + 1; layer < now_.first_layer + now_.num_layers; ++layer) {
      if (!layers_.Repeats(layer)) return false;
    }
    return now_.first_layer > before_.first_layer;
  }

  // Null where it has none; nothing where it holds others' too.
  absl::optional<const HeldBlock*> OwnBlockOf(int layer) const {
    const HeldBlock* own = FindHeld(plan_, class_, "", layer);
    const bool more =
        std::any_of(class_.blocks.begin(), class_.blocks.end(),
                    [&](const HeldBlock& held) { return held.layer == layer && &held != own; });
    return more ? absl::nullopt : absl::make_optional(own);
  }

  // Every layer holds the block of its counterpart, and nothing in it is another's.
  bool HaveSameBlocks() const {
    for (int layer = now_.first_layer; layer < now_.first_layer + now_.num_layers; ++layer) {
      const absl::optional<const HeldBlock*> before = OwnBlockOf(layer - Behind());
      const absl::optional<const HeldBlock*> now = OwnBlockOf(layer);
      if (!before.has_value() || !now.has_value()) return false;
      if (*before == nullptr && *now == nullptr) continue;
      if (*before == nullptr || *now == nullptr) return false;
      if ((*now)->block != (*before)->block || (*now)->owner != (*before)->owner) return false;
      const ParamBlock& block = plan_.blocks[static_cast<size_t>((*now)->block)];
      for (const ParamEntry& entry : block.entries) {
        const ValueId param = plan_.model.FindValue(NameForLayer(entry.name, layer));
        if (param == kNone || !layers_.Owns(layer, param)) return false;
      }
    }
    return true;
  }

  bool CallAlike() {
    for (const bool eval : {false, true}) {
      const std::vector<Chunk>& chunks = eval ? class_.eval_chunks : class_.chunks;
      for (size_t list = 0; list < kNumChunkLists; ++list) {
        const std::vector<Call>& before = *ListsOf(chunks[number_ - 1])[list];
        const std::vector<Call>& now = *ListsOf(chunks[number_])[list];
        const std::vector<const Call*> own = CallsOf(now_, now);
        if (own.size() != now.size() || !AreAlike(CallsOf(before_, before), own)) return false;
      }
    }
    for (const std::vector<Call>* update : {&class_.update, &class_.eval_update}) {
      if (!AreAlike(CallsOf(before_, *update), CallsOf(now_, *update))) return false;
    }
    return !now_.forward.empty();
  }

  static std::vector<const Call*> CallsOf(const Chunk& chunk, const std::vector<Call>& calls) {
    std::vector<const Call*> of_chunk;
    for (const Call& call : calls) {
      const int place = call.layer - chunk.first_layer;
      if (place >= 0 && place < chunk.num_layers) of_chunk.push_back(&call);
    }
    return of_chunk;
  }

  bool AreAlike(const std::vector<const Call*>& before, const std::vector<const Call*>& now) {
    return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                      [&](const Call* a, const Call* b) { return IsAlike(*a, *b); });
  }

  // By layers.
  int Behind() const { return now_.first_layer - before_.first_layer; }

  bool IsAlike(const Call& before, const Call& now) {
    if (now.segment != before.segment || now.layer != before.layer + Behind()) return false;
    const std::vector<Formal>& formals = plan_.segments[static_cast<size_t>(now.segment)].formals;
    for (size_t f = 0; f < formals.size(); ++f) {
      const Binding& there = before.bindings[f];
      const Binding& here = now.bindings[f];
      const int64_t distance = here.offset - there.offset;
      const Region region = formals[f].region;
      const bool own = formals[f].block.empty();
      if (here.base != there.base) return false;
      if (IsOfBlock(region) && own) {
        if (!LiesAlike(before.layer, now.layer, region, here, distance)) return false;
      } else if (region == Region::kNorm) {
        if (!distances_.norm.Is(distance)) return false;
      } else if (region == Region::kCopies && own) {
        if (!distances_.copies.Is(distance)) return false;
      } else if (distance != 0) {
        return false;
      }
    }
    return true;
  }

  // Whether two bindings to the layers' own blocks are as far apart as those.
  bool LiesAlike(int before, int now, Region region, const Binding& here, int64_t distance) const {
    const HeldBlock* theirs = FindHeld(plan_, class_, "", before);
    const HeldBlock* mine = FindHeld(plan_, class_, "", now);
    return mine != nullptr && theirs != nullptr && here.base == BaseKind::kAbsolute &&
           distance == BlockBase(*mine, region) - BlockBase(*theirs, region);
  }

  const Plan& plan_;
  const PlanClass& class_;
  const EqualLayers& layers_;
  const size_t number_;
  const Chunk& before_;
  const Chunk& now_;
  Distances distances_;
};

// Whether what follows layer by layer goes on as far apart as it did.
bool GoOn(const Distances& before, const Distances& now) {
  return !before.norm.Differs(now.norm) && !before.copies.Differs(now.copies);
}

}  // namespace

std::vector<bool> RepeatedChunks(const Plan& plan, const PlanClass& rank_class,
                                 const EqualLayers& layers) {
  std::vector<bool> repeats(rank_class.chunks.size(), false);
  absl::optional<Distances> before;
  for (size_t chunk = 1; chunk < repeats.size(); ++chunk) {
    const absl::optional<Distances> now = ChunkPair(plan, rank_class, layers, chunk).Compare();
    repeats[chunk] = now.has_value() && (!before.has_value() || GoOn(*before, *now));
    before = repeats[chunk] ? now : absl::nullopt;
  }
  return repeats;
}

}  // namespace mgc
