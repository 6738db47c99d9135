#include "passes/plan/stage/slot_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/model_layers.h"
#include "passes/plan/stage/fold_segments.h"

namespace mgc {

int NumberOf(const Formal& formal, Segment* segment) {
  std::vector<Formal>& formals = segment->formals;
  const auto it = std::find(formals.begin(), formals.end(), formal);
  if (it != formals.end()) return static_cast<int>(it - formals.begin());
  formals.push_back(formal);
  return static_cast<int>(formals.size()) - 1;
}

SlotTable::SlotTable(const SegmentContext& context, const Part& part, Segment* segment)
    : context_(context),
      parts_(context.places->parts()),
      graph_(parts_.graph()),
      part_(part),
      segment_(*segment) {
  segment_.formals.emplace_back();
}

void SlotTable::StandIn(ValueId value, ValueId held) {
  stands_for_[parts_.RootOf(value)] = parts_.RootOf(held);
}

int SlotTable::Of(ValueId id) {
  auto [it, fresh] = slots_.try_emplace(id, static_cast<int>(segment_.slots.size()));
  if (!fresh) return it->second;
  const Value& value = graph_.value(id);
  Slot slot;
  slot.type = value.type;
  slot.sharding = *value.sharding;
  slot.bytes = NumElements(graph_.local_shape(id)) * SizeOf(value.type.dtype);
  const ValuePlace place = PlaceOf(id);
  slot.name = NameOf(id, place);
  slot.formal = NumberOf(place.formal, &segment_);
  slot.offset = place.offset;
  segment_.slots.push_back(std::move(slot));
  return it->second;
}

// The residual stream, and what contributes to its gradient, goes by the boundary's formal: named
// after a neighbouring layer, equal layers would differ.
std::string SlotTable::NameOf(ValueId id, const ValuePlace& place) {
  if (IsBoundary(place.formal.region) && IsStream(id)) return ToString(place.formal);
  const Value& value = graph_.value(id);
  if (value.primal != kNone && IsStream(value.primal)) {
    const Formal formal = PlaceOf(value.primal).formal;
    const std::string& crossing = graph_.value(value.primal).name;
    if (formal.region == Region::kInput && absl::StartsWith(value.name, crossing)) {
      return absl::StrCat(ToString(formal), value.name.substr(crossing.size()));
    }
  }
  return FoldName(value.name, part_.layer, graph_.num_layers());
}

ValuePlace SlotTable::PlaceOf(ValueId id) {
  const NodeId producer = graph_.value(id).producer;
  if (producer != kNone && IsStream(id)) {
    const Node& node = graph_.node(producer);
    const bool made_here = node.layer == part_.layer;
    if (node.phase == Phase::kForward)
      return {{made_here ? Region::kOutput : Region::kInput, ""}, 0};
    return {{made_here ? Region::kGradOutput : Region::kGradInput, ""}, 0};
  }
  const ValueId copy = context_.places->FirstCopy(id, context_.holds);
  if (copy != id) {
    ValuePlace place = context_.places->PlaceOf(copy, part_.layer);
    const int layer = graph_.node(graph_.value(copy).producer).layer;
    if (layer != part_.layer) place.formal.block = BlockOfLayer(layer, graph_.num_layers());
    return place;
  }
  ValueId root = parts_.RootOf(id);
  auto it = stands_for_.find(root);
  if (it == stands_for_.end() && part_.phase == Phase::kUpdate) it = FindStandIn(root);
  if (it != stands_for_.end()) root = it->second;
  return context_.places->PlaceOf(root, part_.layer);
}

// The root of a tied gradient is an accumulator; where the class does not hold it, the first that
// it does takes its place, of those that are added as they are.
std::map<ValueId, ValueId>::iterator SlotTable::FindStandIn(ValueId root) {
  const GraphInput* accumulator =
      graph_.value(root).producer == kNone ? graph_.FindInput(root) : nullptr;
  if (accumulator == nullptr || accumulator->kind != InputKind::kAccumulator) {
    return stands_for_.end();
  }
  const int layer = context_.places->GradLayer(root);
  if (layer == kNoLayer || context_.holds(layer)) return stands_for_.end();
  for (const GraphInput& input : graph_.inputs()) {
    const bool sibling = input.kind == InputKind::kAccumulator && input.value != root &&
                         parts_.ParamOf(input.value) == parts_.ParamOf(root) &&
                         parts_.IsTerm(input.value) &&
                         context_.holds(parts_.HomeLayer(input.value));
    if (sibling) return stands_for_.emplace(root, input.value).first;
  }
  return stands_for_.end();
}

}  // namespace mgc
