#include "graph/verify/shrink/equal_calls.h"

#include <algorithm>

#include "graph/verify/shrink/own_blocks.h"

namespace mgc {
namespace {

// Of EqualCalls::kLists first those of a training chunk, then those of evaluation, both in the
// order of ListsOf; the updates last.
constexpr size_t kEval = kNumChunkLists;
constexpr size_t kUpdate = 2 * kNumChunkLists;
constexpr size_t kEvalUpdate = kUpdate + 1;
constexpr size_t kForward = static_cast<size_t>(ActionKind::kForward);
constexpr size_t kBackward = static_cast<size_t>(ActionKind::kBackward);

bool Same(const Binding& a, const Binding& b) { return a.base == b.base && a.offset == b.offset; }

bool IsForward(size_t list) { return list == kForward || list == kEval + kForward; }
// Of every micro-batch, or of the last one, whose list starts reductions as well.
bool IsBackward(size_t list) {
  return list < kUpdate && (list % kEval == kBackward || list % kEval == kLastBackwardList);
}
// The forward beside it.
size_t ForwardOf(size_t list) { return list < kEval ? kForward : kEval + kForward; }

}  // namespace

EqualCalls::EqualCalls(const Plan& plan, const PlanClass& rank_class, size_t chunk,
                       const EqualLayers& layers)
    : plan_(plan),
      class_(rank_class),
      chunk_(rank_class.chunks[chunk]),
      model_(layers),
      layers_(static_cast<size_t>(std::max(rank_class.chunks[chunk].num_layers, 0))) {
  const Chunk& eval = rank_class.eval_chunks[chunk];
  for (size_t list = 0; list < kNumChunkLists; ++list) {
    AddCalls(*ListsOf(chunk_)[list], list);
    AddCalls(*ListsOf(eval)[list], kEval + list);
  }
  AddCalls(rank_class.update, kUpdate);
  AddCalls(rank_class.eval_update, kEvalUpdate);
  AddBlocks();
}

void EqualCalls::AddCalls(const std::vector<Call>& calls, size_t list) {
  for (const Call& call : calls) {
    if (IsOfChunk(call.layer)) At(call.layer).lists[list].push_back(&call);
  }
}

void EqualCalls::AddBlocks() {
  for (const HeldBlock& held : class_.blocks) {
    if (!IsOfChunk(held.layer)) continue;
    // A block of tied parameters is nobody's own.
    const bool own = FindHeld(plan_, class_, "", held.layer) == &held;
    if (own) At(held.layer).own = &held;
    At(held.layer).holds_more |= !own;
  }
}

std::vector<bool> EqualCalls::Repeats() const {
  std::vector<bool> repeats(layers_.size(), false);
  for (size_t i = 1; i < layers_.size(); ++i) {
    repeats[i] = IsRepeated(chunk_.first_layer + static_cast<int>(i), repeats[i - 1]);
  }
  return repeats;
}

bool EqualCalls::IsRepeated(int layer, bool known) const {
  const Layer& before = At(layer - 1);
  const Layer& now = At(layer);
  if (!model_.Repeats(layer) || !HasSameBlock(layer)) return false;
  for (size_t list = 0; list < kLists; ++list) {
    const size_t calls = now.lists[list].size();
    if (calls != before.lists[list].size()) return false;
    if (!IsLinkedByOne(now, list)) return false;
    for (size_t call = 0; call < calls; ++call) {
      if (!IsBoundAlike(layer, list, call, known)) return false;
    }
  }
  return !now.lists[kForward].empty();
}

// At most one call of the layer takes something from a neighbour, or leaves it something.
bool EqualCalls::IsLinkedByOne(const Layer& layer, size_t list) const {
  return std::count_if(layer.lists[list].begin(), layer.lists[list].end(), [&](const Call* call) {
           const auto& formals = plan_.segments[static_cast<size_t>(call->segment)].formals;
           return std::any_of(formals.begin(), formals.end(),
                              [](const Formal& formal) { return IsBoundary(formal.region); });
         }) <= 1;
}

bool EqualCalls::HasSameBlock(int layer) const {
  const Layer& before = At(layer - 1);
  const Layer& now = At(layer);
  return !before.holds_more && !now.holds_more && HoldAlike(plan_, model_, before.own, now.own);
}

bool EqualCalls::IsBoundAlike(int layer, size_t list, size_t call, bool known) const {
  const Call& now = *At(layer).lists[list][call];
  if (now.segment != At(layer - 1).lists[list][call]->segment) return false;
  const size_t formals = plan_.segments[static_cast<size_t>(now.segment)].formals.size();
  for (size_t formal = 0; formal < formals; ++formal) {
    if (!IsBoundAlike(layer, list, call, formal, known)) return false;
  }
  return true;
}

bool EqualCalls::IsBoundAlike(int layer, size_t list, size_t call, size_t formal,
                              bool known) const {
  const auto bound = [&](int l) -> const Binding& {
    return At(l).lists[list][call]->bindings[formal];
  };
  const Binding& now = bound(layer);
  const Binding& before = bound(layer - 1);
  const Formal& kind =
      plan_.segments[static_cast<size_t>(At(layer).lists[list][call]->segment)].formals[formal];
  if (IsBoundary(kind.region)) return IsLinked(layer, list, kind.region);
  if (IsOfBlock(kind.region) && kind.block.empty()) {
    return LieAlike(At(layer - 1).own, before, At(layer).own, now, kind.region);
  }
  if (IsInTurn(kind.region)) {
    return now.base == before.base && (!known || Same(now, bound(layer - 2)));
  }
  const bool steps = kind.region == Region::kNorm ||
                     (kind.region == Region::kCopies && kind.block.empty()) ||
                     (kind.region == Region::kFrame && kind.block != kSharedFrame);
  if (!steps) return Same(now, before);
  return now.base == before.base &&
         (!known || now.offset - before.offset == before.offset - bound(layer - 2).offset);
}

// What a layer reads is what its neighbour writes; backward finds a boundary where forward did.
bool EqualCalls::IsLinked(int layer, size_t list, Region region) const {
  const Binding* now = BindingOf(layer, list, region);
  const Binding* there = nullptr;
  if (IsForward(list) && region == Region::kInput) {
    there = BindingOf(layer - 1, list, Region::kOutput);
  } else if (IsBackward(list) && region == Region::kGradOutput) {
    there = BindingOf(layer - 1, list, Region::kGradInput);
  } else if (IsBackward(list) && (region == Region::kInput || region == Region::kOutput)) {
    there = BindingOf(layer, ForwardOf(list), region);
  } else {
    return (IsForward(list) && region == Region::kOutput) ||
           (IsBackward(list) && region == Region::kGradInput);
  }
  return now != nullptr && there != nullptr && Same(*now, *there);
}

const Binding* EqualCalls::BindingOf(int layer, size_t list, Region region) const {
  for (const Call* call : At(layer).lists[list]) {
    const std::vector<Formal>& formals = plan_.segments[static_cast<size_t>(call->segment)].formals;
    for (size_t f = 0; f < formals.size(); ++f) {
      if (formals[f].region == region) return &call->bindings[f];
    }
  }
  return nullptr;
}

}  // namespace mgc
