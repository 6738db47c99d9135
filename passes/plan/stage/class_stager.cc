#include "passes/plan/stage/class_stager.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/ir/model_layers.h"
#include "passes/plan/stage/build_segment.h"
#include "passes/plan/stage/bundles.h"
#include "passes/plan/stage/set_waits.h"

namespace mgc {
namespace {

// The stages of a class, by chunk.
std::vector<int> StagesOf(const LayerPlacement& placement, int coordinate) {
  std::vector<int> stages;
  for (size_t s = 0; s < placement.places.size(); ++s) {
    const StagePlace& place = placement.places[s];
    if (place.rank_class != coordinate) continue;
    const size_t chunk = static_cast<size_t>(place.chunk);
    if (stages.size() <= chunk) stages.resize(chunk + 1);
    stages[chunk] = static_cast<int>(s);
  }
  return stages;
}

// The place of the action that all layers of a stage see.
StagedBase SharedBase(Region region) {
  if (region == Region::kInput) return StagedBase::kInput;
  if (region == Region::kOutput) return StagedBase::kOutput;
  if (region == Region::kGradInput) return StagedBase::kGradInput;
  return region == Region::kGradOutput ? StagedBase::kGradOutput : StagedBase::kFrame;
}

}  // namespace

PartNodes NodesByPart(const Parts& parts) {
  PartNodes nodes;
  for (size_t n = 0; n < parts.graph().nodes().size(); ++n) {
    nodes[parts.of(static_cast<NodeId>(n))].push_back(static_cast<NodeId>(n));
  }
  return nodes;
}

ClassStager::ClassStager(const StagedGraph& graph, int coordinate, SegmentCache* cache,
                         SegmentFolder* folder)
    : places_(graph.places),
      parts_(graph.places.parts()),
      nodes_(graph.nodes),
      placement_(graph.placement),
      layers_(graph.layers),
      stages_(StagesOf(graph.placement, coordinate)),
      folder_(folder),
      stream_(places_.crossings().stream()),
      stream_bytes_(stream_ == kNone ? 0 : RoomFor(parts_.graph(), stream_)) {
  for (const int stage : stages_) {
    for (int layer : LayersOf(Content(stage))) {
      held_.insert(layer);
      held_kept_.insert(layers_.KeptFor(layer));
    }
  }
  segments_ = &(*cache)[held_kept_];
  has_backward_ = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.first.phase == Phase::kBackward;
  });
  context_.places = &places_;
  context_.stages = &placement_.places;
  context_.holds = [this](int kept) { return held_kept_.count(kept) > 0; };
  for (const int layer : held_) {
    copy_base_[BlockOfLayer(layer, layers_.num_layers())] = copy_bytes_;
    copy_bytes_ += places_.copy_bytes(layers_.KeptFor(layer), context_.holds);
  }
  TakeTurns();
}

// Neighbouring layers take two places in turn, of each as much as any of its layers needs.
void ClassStager::TakeTurns() {
  for (const int layer : held_) {
    const size_t turn = static_cast<size_t>(layer & 1);
    const int kept = layers_.KeptFor(layer);
    gathered_of_turn_[turn] = std::max(gathered_of_turn_[turn], places_.gathered_bytes(kept));
    owed_of_turn_[turn] = std::max(owed_of_turn_[turn], places_.owed_bytes(kept));
  }
  copy_bytes_ += gathered_of_turn_[0] + gathered_of_turn_[1];
}

int64_t ClassStager::PlaceInTurn(Region region, int layer) const {
  const bool odd = (layer & 1) != 0;
  if (region == Region::kOwed) return odd ? owed_of_turn_[0] : 0;
  return copy_bytes_ - gathered_of_turn_[1] - (odd ? 0 : gathered_of_turn_[0]);
}

std::vector<StagedChunk> ClassStager::Chunks() {
  std::vector<StagedChunk> chunks;
  for (const int stage : stages_) {
    chunks.push_back(MakeChunk(stage));
    const StagedChunk& made = chunks.back();
    const auto starts = [this](const StagedCall& call) {
      return BackgroundStartsOf(*folder_, call) > 0;
    };
    runs_on_ |= !made.last_backward.empty() ||
                std::any_of(made.prepare.begin(), made.prepare.end(), starts);
  }
  SetWaits(*folder_, layers_.num_layers(), &chunks);
  return chunks;
}

std::vector<StagedCall> ClassStager::Update() {
  std::vector<StagedCall> calls;
  const std::set<int> layers = UpdatedLayers();
  for (int number = 0; number < parts_.num_update_parts(); ++number) {
    for (const int layer : layers) {
      const Part part{Phase::kUpdate, number, layer};
      const auto found = nodes_.find(Kept(part));
      if (found == nodes_.end()) continue;
      const std::vector<NodeId>& nodes = found->second;
      const std::vector<NodeId> mine = layer == kNoLayer ? nodes : Mine(part, nodes);
      if (!mine.empty()) calls.push_back(MakeCall(part, mine));
    }
  }
  if (runs_on_) calls.front().running = 0;
  return calls;
}

// Layers that have something to update on the class: those that it holds, and those of parameters
// that it may hold copies of; and what is of no layer.
std::set<int> ClassStager::UpdatedLayers() const {
  std::set<int> layers = held_;
  layers.insert(kNoLayer);
  for (const int kept : parts_.tied_layers()) layers.insert(layers_.FirstOf(kept));
  return layers;
}

// Embedding, layers and head of a chunk. One that passes have left nothing of keeps its calls,
// of segments that do nothing; without a graph, of an evaluation, there are none.
std::vector<int> ClassStager::LayersOf(const StageContent& content) const {
  std::vector<int> layers;
  if (nodes_.empty()) return layers;
  if (content.has_embedding) layers.push_back(kEmbeddingLayer);
  for (int64_t i = 0; i < content.num_layers; ++i) {
    layers.push_back(static_cast<int>(content.first_layer + i));
  }
  if (content.has_head) layers.push_back(layers_.num_layers());
  return layers;
}

// Of a layer's update nodes, those this class runs: all of a layer it holds; of another layer those
// of parameters it holds a copy of, the norm's share apart, which the owner counts. Of what is done
// to a layer's sum of gradients before it is added to others, what is done to its own.
std::vector<NodeId> ClassStager::Mine(const Part& part, const std::vector<NodeId>& nodes) const {
  const bool holds = held_.count(part.layer) > 0;
  std::vector<NodeId> mine;
  for (NodeId id : nodes) {
    const Node& node = parts_.graph().node(id);
    const ValueId param = parts_.ParamOf(node.outputs[0]);
    if (!holds && (param == kNone || !HoldsCopy(param) || parts_.IsNormShare(id))) continue;
    if (HoldsSource(node)) mine.push_back(id);
  }
  return mine;
}

// Whether the class has the sum of gradients that a node of the update is about, if it is of one
// layer.
bool ClassStager::HoldsSource(const Node& node) const {
  const ValueId param = parts_.ParamOf(node.outputs[0]);
  if (param == kNone || !parts_.IsTied(param)) return true;
  const int source = parts_.SourceLayer(node.outputs[0]);
  return source == kNoLayer || context_.holds(source);
}

bool ClassStager::HoldsCopy(ValueId param) const {
  if (!parts_.IsTied(param)) return false;
  for (NodeId user : parts_.users()[static_cast<size_t>(param)]) {
    const Node& node = parts_.graph().node(user);
    if (node.phase != Phase::kUpdate && context_.holds(node.layer)) return true;
  }
  return false;
}

StagedChunk ClassStager::MakeChunk(int stage) {
  const StageContent& content = Content(stage);
  StagedChunk chunk;
  chunk.stage = stage;
  chunk.first_layer = static_cast<int>(content.first_layer);
  chunk.num_layers = static_cast<int>(content.num_layers);
  chunk.has_embedding = content.has_embedding;
  chunk.has_head = content.has_head;
  chunk.frame_bytes = places_.shared_frame_bytes(stage);
  const std::vector<int> layers = LayersOf(content);
  for (size_t i = 0; i < layers.size(); ++i) {
    AddLayer(layers[i], i == 0, i + 1 == layers.size(), &chunk);
  }
  std::reverse(chunk.backward.begin(), chunk.backward.end());
  chunk.forward = InTurns(Phase::kForward, chunk.forward);
  chunk.backward = InTurns(Phase::kBackward, chunk.backward);
  AddRelay(stage, Phase::kForward, &chunk.forward);
  AddRelay(stage, Phase::kBackward, &chunk.backward);
  AddLastBackward(&chunk);
  return chunk;
}

// Between the calls of the layers, one of each, what they do in turn with their neighbours. The
// next layer's parameters are gathered and the last one's gradients summed while a layer computes:
//
//   gather 3, gather 2, backward 3, reduce 3, gather 1, backward 2, reduce 2, collect 3, ...
std::vector<StagedCall> ClassStager::InTurns(Phase phase, const std::vector<StagedCall>& calls) {
  std::vector<StagedCall> made;
  const auto add = [&](int number, size_t i) {
    if (i >= calls.size()) return;
    const Part part{phase, number, calls[i].layer};
    if (Has(part)) made.push_back(CallOf(part));
  };
  add(kGatherPart, 0);
  for (size_t i = 0; i < calls.size(); ++i) {
    add(kGatherPart, i + 1);
    made.push_back(calls[i]);
    add(kReducePart, i);
    if (i > 0) add(kCollectPart, i - 1);
  }
  if (!calls.empty()) add(kCollectPart, calls.size() - 1);
  return made;
}

// A layer's gradients are whole when its backward has added those of the last micro-batch: from
// then on they may be reduced, beside the backward of the layers below.
void ClassStager::AddLastBackward(StagedChunk* chunk) {
  std::map<int, size_t> last;  // by layer
  for (size_t i = 0; i < chunk->backward.size(); ++i) last[chunk->backward[i].layer] = i;
  std::vector<StagedCall> calls;
  for (size_t i = 0; i < chunk->backward.size(); ++i) {
    const StagedCall& call = chunk->backward[i];
    calls.push_back(call);
    const Part reduce{Phase::kUpdate, kReducePart, call.layer};
    if (last[call.layer] == i && Has(reduce)) calls.push_back(CallOf(reduce));
  }
  if (calls.size() > chunk->backward.size()) chunk->last_backward = std::move(calls);
}

void ClassStager::AddLayer(int layer, bool first, bool last, StagedChunk* chunk) {
  const int64_t frame = chunk->frame_bytes;
  const int64_t input = frame - stream_bytes_;  // the previous layer left its output there
  chunk->frame_bytes += AlignUp(places_.frame_bytes(layers_.KeptFor(layer)));
  const int64_t output = chunk->frame_bytes;
  if (!last) chunk->frame_bytes += stream_bytes_;
  const auto bind = [&](StagedCall call, bool in_backward) {
    const Segment& segment = folder_->segment(call.segment);
    for (size_t f = 0; f < segment.formals.size(); ++f) {
      StagedBinding& binding = call.bindings[f];
      const Region region = segment.formals[f].region;
      if (segment.formals[f].block == kSharedFrame) {
        binding = {SharedBase(region), 0};
      } else if (region == Region::kFrame) {
        binding = {StagedBase::kFrame, frame};
      } else if (region == Region::kInput) {
        binding =
            first ? StagedBinding{StagedBase::kInput, 0} : StagedBinding{StagedBase::kFrame, input};
      } else if (region == Region::kOutput) {
        binding = last ? StagedBinding{StagedBase::kOutput, 0}
                       : StagedBinding{StagedBase::kFrame, output};
      } else if (region == Region::kGradInput && last) {
        binding = {StagedBase::kGradInput, 0};
      } else if (region == Region::kGradOutput && first) {
        binding = {StagedBase::kGradOutput, 0};
      } else if (region == Region::kGradInput || region == Region::kGradOutput) {
        // Two places in turn: what a layer writes, the one below reads.
        const int64_t turn = (layer + (region == Region::kGradInput ? 1 : 0)) & 1;
        binding = {StagedBase::kRegion, turn * stream_bytes_};
      }
    }
    (in_backward ? chunk->backward : chunk->forward).push_back(std::move(call));
  };
  bind(CallOf({Phase::kForward, 0, layer}), false);
  if (has_backward_) bind(CallOf({Phase::kBackward, 0, layer}), true);
  const Part prepare{Phase::kPrepare, 0, layer};
  if (Has(prepare)) {
    const std::vector<NodeId> made = MadeOf(nodes_.at(Kept(prepare)));
    if (!made.empty()) chunk->prepare.push_back(MakeCall(prepare, made));
  }
}

// What the layers of a stage do not put into the bundle that it leaves.
void ClassStager::AddRelay(int stage, Phase phase, std::vector<StagedCall>* calls) {
  const Bundles& bundles = places_.bundles();
  std::vector<HandedValue> values;
  for (const ValueId id : bundles.HandedOn(stage, phase)) {
    values.push_back({id, places_.PlaceInStage(id, stage), bundles.PlaceLeft(id, stage)});
  }
  if (values.empty()) return;
  StagedCall call;
  call.segment = folder_->Add(RelaySegment(parts_.graph(), values, phase));
  call.bindings = {{}};
  const std::vector<Formal>& formals = folder_->segment(call.segment).formals;
  for (size_t f = 1; f < formals.size(); ++f) {
    call.bindings.push_back({SharedBase(formals[f].region), 0});
  }
  calls->push_back(std::move(call));
}

// Of a layer's copies those that no layer of the class before it makes, with what they are made of.
std::vector<NodeId> ClassStager::MadeOf(const std::vector<NodeId>& nodes) const {
  const Graph& graph = parts_.graph();
  std::set<ValueId> wanted;
  std::vector<NodeId> made;
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    const Node& node = graph.node(*id);
    const ValueId result = node.outputs[0];
    const bool is_copy = places_.PlaceOf(result, node.layer).formal.region == Region::kCopies;
    const bool is_first = places_.FirstCopy(result, context_.holds) == result;
    if (!(is_copy && is_first) && wanted.count(result) == 0) continue;
    wanted.insert(node.inputs.begin(), node.inputs.end());
    made.push_back(*id);
  }
  std::reverse(made.begin(), made.end());
  return made;
}

StagedCall ClassStager::CallOf(const Part& part) {
  const auto nodes = nodes_.find(Kept(part));
  return MakeCall(part, nodes == nodes_.end() ? std::vector<NodeId>() : nodes->second);
}

StagedCall ClassStager::MakeCall(const Part& part, const std::vector<NodeId>& nodes) {
  StagedCall call;
  const Part kept = Kept(part);
  const auto [made, is_new] = segments_->try_emplace(kept, 0);
  if (is_new) {
    const int known = folder_->size();
    made->second = folder_->Add(BuildSegment(context_, kept, nodes));
    has_places_ = has_places_ && (made->second < known || layers_.HasPlaceOf(part.layer));
  }
  call.segment = made->second;
  call.layer = part.layer;
  const std::vector<Formal>& formals = folder_->segment(call.segment).formals;
  call.bindings.resize(formals.size());
  for (size_t f = 0; f < formals.size(); ++f) {
    if (formals[f].region == Region::kNorm) {
      call.bindings[f].offset = places_.NormBase(part.layer);
    } else if (IsInTurn(formals[f].region)) {
      call.bindings[f].offset = PlaceInTurn(formals[f].region, part.layer);
    } else if (formals[f].region == Region::kCopies) {
      const std::string& block = formals[f].block;
      call.bindings[f].offset =
          copy_base_.at(block.empty() ? BlockOfLayer(part.layer, layers_.num_layers()) : block);
    }
  }
  return call;
}

}  // namespace mgc
