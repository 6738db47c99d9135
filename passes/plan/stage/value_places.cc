#include "passes/plan/stage/value_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/ir/collective.h"
#include "graph/ir/model_layers.h"
#include "graph/ir/results.h"
#include "graph/ir/step_vector.h"
#include "passes/plan/stage/whole_vectors.h"

namespace mgc {
namespace {

constexpr int64_t kEntryBytes = 8;  // of a vector of the step

bool IsTransient(const ValuePlace& place) { return place.formal.region == Region::kTransient; }

}  // namespace

int64_t RoomFor(const Graph& graph, ValueId id) {
  const TensorType& type = graph.type(id);
  return AlignUp(NumElements(graph.local_shape(id)) * SizeOf(type.dtype));
}

ValuePlaces::ValuePlaces(const Parts& parts, const Crossings& crossings, const Bundles& bundles,
                         const LayerMap& layers, const SharedParams* shared,
                         const ValuePlaces* trained)
    : parts_(parts),
      crossings_(crossings),
      bundles_(bundles),
      layers_(layers),
      graph_(parts.graph()),
      shared_(shared),
      places_(graph_.values().size()),
      grad_layer_(graph_.values().size(), kNoLayer) {
  PlaceStacks();
  PlaceInputs(trained);
  zeroed_global_bytes_ = global_bytes_;
  for (const GraphInput& input : graph_.inputs()) {
    if (IsNumber(input)) PlaceGlobal(input.value);
  }
  for (const GraphOutput* result : ResultsOf(graph_)) PlaceGlobal(result->value);
  PlaceCopies();
  PlaceNodes();
}

bool ValuePlaces::IsNumber(const GraphInput& input) const {
  return input.kind == InputKind::kScalar ||
         (input.kind == InputKind::kState && parts_.ParamOf(input.value) == kNone &&
          !IsKeptState(graph_, input));
}

void ValuePlaces::PlaceGlobal(ValueId id) {
  places_[Index(id)] = {{Region::kGlobals, ""}, global_bytes_};
  global_bytes_ += RoomFor(graph_, id);
}

// Packing is no computation: operands are written where the vector lies.
void ValuePlaces::PlaceStacks() {
  for (const Node& node : graph_.nodes()) {
    if (!PacksStepVector(node)) continue;
    const int64_t base = global_bytes_;
    PlaceGlobal(node.outputs[0]);
    const VectorEntries entries = EntriesOf(parts_, layers_, node);
    for (const auto& [layer, entry] : entries.of_layers) {
      norm_base_.try_emplace(layer, base + kEntryBytes * entry);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int64_t offset = base + kEntryBytes * entries.of_operands[i];
      places_[Index(parts_.RootOf(node.inputs[i]))] = {{Region::kGlobals, ""}, offset};
      const ValueId param = parts_.ParamOf(node.inputs[i]);
      if (param != kNone) places_[Index(node.inputs[i])].formal.region = Region::kNorm;
    }
  }
}

void ValuePlaces::PlaceInputs(const ValuePlaces* trained) {
  for (const GraphInput& input : graph_.inputs()) {
    const ValueId id = input.value;
    const ValueId param = parts_.ParamOf(id);
    if (input.kind == InputKind::kAccumulator && param == kNone) {
      if (IsTransient(places_[Index(id)])) PlaceGlobal(id);
      continue;
    }
    if (IsKeptState(graph_, input)) {
      int64_t& bytes = blocks_[{parts_.HomeLayer(id), ""}].states;
      places_[Index(id)] = {{Region::kStates, ""}, bytes};
      bytes += RoomFor(graph_, id);
    }
    if (param == kNone) continue;
    const bool gradient = input.kind == InputKind::kAccumulator;
    const int layer = parts_.HomeLayer(gradient ? id : param);
    const std::string name = gradient ? "" : BlockName(param);
    BlockBytes& block = blocks_[{layer, name}];
    if (input.kind == InputKind::kParam) {
      if (trained != nullptr) {
        const ValueId there = trained->graph_.FindValue(graph_.value(id).name);
        places_[Index(id)] = trained->places_[Index(there)];
        continue;
      }
      places_[Index(id)] = {{Region::kParams, name}, block.params};
      block.params += RoomFor(graph_, id);
    } else if (gradient) {
      places_[Index(id)] = {{Region::kGrads, ""}, block.grads};
      grad_layer_[Index(id)] = layer;
      block.grads += RoomFor(graph_, id);
    } else {
      places_[Index(id)] = {{Region::kStates, name}, block.states};
      block.states += RoomFor(graph_, id);
    }
  }
}

void ValuePlaces::PlaceNodes() {
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    for (ValueId id : node.outputs) {
      if (parts_.RootOf(id) != id || !IsTransient(places_[Index(id)])) continue;
      if (node.phase == Phase::kPrepare || PlaceInTurn(static_cast<NodeId>(n), id)) continue;
      if (node.phase != Phase::kUpdate) {
        PlaceFrameValue(node, id);
      } else if (node.layer == kNoLayer) {
        PlaceGlobal(id);
      } else if (parts_.IsGradient(id)) {
        const std::string name = BlockName(parts_.ParamOf(id));
        BlockBytes& block = blocks_[{node.layer, name}];
        places_[Index(id)] = {{Region::kGrads, name}, block.grads};
        grad_layer_[Index(id)] = node.layer;
        block.grads += RoomFor(graph_, id);
      }
    }
  }
}

bool ValuePlaces::IsCopy(ValueId id) const {
  const NodeId producer = graph_.value(id).producer;
  if (producer == kNone || graph_.node(producer).phase != Phase::kPrepare) return false;
  const std::vector<NodeId>& users = parts_.users()[Index(id)];
  return std::any_of(users.begin(), users.end(), [this](NodeId user) {
    const Node& node = graph_.node(user);
    return IsOfMicroBatch(node.phase) ||
           (node.op->collective && CollectiveOf(graph_, node).MovesData());
  });
}

// The parameter that a copy has come from, by casts and collectives.
ValueId ValuePlaces::MasterOf(ValueId copy) const {
  while (graph_.value(copy).producer != kNone) {
    copy = graph_.node(graph_.value(copy).producer).inputs[0];
  }
  return copy;
}

void ValuePlaces::FindCopies() {
  for (const Node& node : graph_.nodes()) {
    for (ValueId id : node.outputs) {
      if (IsCopy(id)) copies_[MasterOf(id)].push_back(id);
    }
  }
}

ValueId ValuePlaces::FirstCopy(ValueId id, const std::function<bool(int layer)>& holds) const {
  if (!IsCopy(id)) return id;
  for (const ValueId other : copies_.at(MasterOf(id))) {
    const bool alike =
        graph_.type(other) == graph_.type(id) && graph_.sharding(other) == graph_.sharding(id);
    if (alike && holds(MakerOf(other))) return other;
  }
  return id;
}

// What a gather reads stays beside what it makes: it runs when the segment has ended. What else a
// copy is made of on the way dies with the segment.
void ValuePlaces::PlaceCopies() {
  FindCopies();
  for (const bool of_several : {false, true}) {
    for (const auto& [master, copies] : copies_) {
      for (const ValueId id : copies) {
        const int layer = MakerOf(id);
        const bool is_shared = std::any_of(copies.begin(), copies.end(),
                                           [&](ValueId other) { return MakerOf(other) != layer; });
        if (of_several != is_shared) continue;
        int64_t& bytes = copy_bytes_[layer];
        places_[Index(id)] = {{Region::kCopies, ""}, bytes};
        bytes += RoomFor(graph_, id);
      }
    }
    if (!of_several) own_copy_bytes_ = copy_bytes_;
  }
}

// What one part of a layer's forward or backward hands to another, and all that a collective uses
// which runs on when its part has ended.
bool ValuePlaces::PlaceInTurn(NodeId node, ValueId id) {
  const Part& part = parts_.of(node);
  if (!IsOfMicroBatch(part.phase) || crossings_.IsKept(id) || crossings_.IsStream(id)) return false;
  const std::vector<NodeId>& users = parts_.users()[Index(id)];
  const bool handed = std::any_of(users.begin(), users.end(), [&](NodeId user) {
    const Part& other = parts_.of(user);
    return other.phase == part.phase && other.layer == part.layer && other.number != part.number;
  });
  const bool gathered = part.number == kGatherPart;
  if (!handed && !gathered && part.number != kReducePart) return false;
  int64_t& bytes = gathered ? gathered_bytes_[{part.layer, part.phase}] : owed_bytes_[part.layer];
  places_[Index(id)] = {{gathered ? Region::kGathered : Region::kOwed, ""}, bytes};
  bytes += RoomFor(graph_, id);
  return true;
}

// What other layers of the stage read is kept in the frame where no bundle has it, and what forward
// makes and the backward of the same layer reads. The residual stream is in boundary slots.
void ValuePlaces::PlaceFrameValue(const Node& node, ValueId id) {
  const auto place = [&](const std::string& part, int64_t* bytes) {
    places_[Index(id)] = {{Region::kFrame, part}, *bytes};
    *bytes += RoomFor(graph_, id);
  };
  if (crossings_.IsKept(id)) {
    const int stage = crossings_.StageOf(node.layer);
    if (!bundles_.PlaceIn(id, stage).has_value()) place(kSharedFrame, &shared_frame_bytes_[stage]);
    return;
  }
  if (node.phase != Phase::kForward || crossings_.IsStream(id)) return;
  const std::vector<NodeId>& users = parts_.users()[Index(id)];
  const bool kept = std::any_of(users.begin(), users.end(), [this](NodeId user) {
    return graph_.node(user).phase == Phase::kBackward;
  });
  if (kept) place("", &frame_bytes_[node.layer]);
}

ValuePlace ValuePlaces::PlaceOf(ValueId id, int layer) const {
  const ValueId root = parts_.RootOf(id);
  if (crossings_.IsKept(root)) return PlaceInStage(root, crossings_.StageOf(layer));
  ValuePlace place = places_[Index(root)];
  if (place.formal.region == Region::kNorm) place.offset -= NormBase(layers_.FirstOf(layer));
  const int home = grad_layer_[Index(root)];
  if (place.formal == Formal{Region::kGrads, ""} && home != layer) {
    place.formal.block = BlockOfLayer(home, graph_.num_layers());
  }
  return place;
}

ValuePlace ValuePlaces::PlaceInStage(ValueId id, int stage) const {
  return bundles_.PlaceIn(id, stage).value_or(places_[Index(id)]);
}

int64_t ValuePlaces::copy_bytes(int layer, const std::function<bool(int layer)>& holds) const {
  const auto bytes_in = [layer](const std::map<int, int64_t>& bytes) {
    const auto it = bytes.find(layer);
    return it == bytes.end() ? 0 : it->second;
  };
  for (const auto& [master, copies] : copies_) {
    if (copies.size() == 1) continue;
    for (const ValueId id : copies) {
      const bool of_layer = graph_.node(graph_.value(id).producer).layer == layer;
      if (of_layer && FirstCopy(id, holds) == id) return bytes_in(copy_bytes_);
    }
  }
  return bytes_in(own_copy_bytes_);
}

int64_t ValuePlaces::gathered_bytes(int layer) const {
  int64_t most = 0;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const auto it = gathered_bytes_.find({layer, phase});
    if (it != gathered_bytes_.end()) most = std::max(most, it->second);
  }
  return most;
}

int64_t ValuePlaces::owed_bytes(int layer) const {
  const auto it = owed_bytes_.find(layer);
  return it == owed_bytes_.end() ? 0 : it->second;
}

int64_t ValuePlaces::frame_bytes(int layer) const {
  auto it = frame_bytes_.find(layer);
  return it == frame_bytes_.end() ? 0 : it->second;
}

int64_t ValuePlaces::shared_frame_bytes(int stage) const {
  auto it = shared_frame_bytes_.find(stage);
  return it == shared_frame_bytes_.end() ? 0 : it->second;
}

int64_t ValuePlaces::NormBase(int layer) const {
  const auto it = norm_base_.find(layer);
  return it == norm_base_.end() ? 0 : it->second;
}

const ValuePlaces::BlockBytes& ValuePlaces::block(int layer, const std::string& name) const {
  static const BlockBytes kEmpty;
  auto it = blocks_.find({layer, name});
  return it == blocks_.end() ? kEmpty : it->second;
}

std::vector<ValueId> ValuePlaces::ParamsOf(int layer, const std::string& name) const {
  std::vector<ValueId> params;
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind == InputKind::kParam && parts_.HomeLayer(input.value) == layer &&
        BlockName(input.value) == name) {
      params.push_back(input.value);
    }
  }
  return params;
}

}  // namespace mgc
