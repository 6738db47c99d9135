#include "passes/plan/stage/stage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "passes/graph/differentiate.h"
#include "passes/plan/stage/build_segment.h"
#include "passes/plan/stage/fold_segments.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/shared_params.h"
#include "passes/plan/stage/value_places.h"

namespace mgc {
namespace {

// But for their names. Layers without parameters may still keep gradients, of what others own.
bool AreEqual(const ParamBlock& a, const ParamBlock& b) {
  const auto bytes = [](const ParamBlock& block) {
    return std::tie(block.param_bytes, block.grad_bytes, block.state_bytes);
  };
  if (bytes(a) != bytes(b)) return false;
  const auto fields = [](const ParamEntry& e) {
    return std::tie(e.name, e.type, e.sharding, e.state_sharding, e.init, e.param_offset,
                    e.mean_base, e.mean_offset, e.m_offset, e.v_offset);
  };
  return std::equal(
      a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
      [&](const ParamEntry& x, const ParamEntry& y) { return fields(x) == fields(y); });
}

// The nodes of every part of one graph.
std::map<Part, std::vector<NodeId>> NodesByPart(const Parts& parts) {
  std::map<Part, std::vector<NodeId>> nodes;
  for (size_t n = 0; n < parts.graph().nodes().size(); ++n) {
    nodes[parts.of(static_cast<NodeId>(n))].push_back(static_cast<NodeId>(n));
  }
  return nodes;
}

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

// One graph (training or evaluation) seen by one class.
class ClassStager {
 public:
  ClassStager(const ValuePlaces& places, const std::map<Part, std::vector<NodeId>>& nodes,
              const LayerPlacement& placement, int coordinate, SegmentFolder* folder)
      : places_(places),
        parts_(places.parts()),
        nodes_(nodes),
        placement_(placement),
        stages_(StagesOf(placement, coordinate)),
        folder_(folder),
        stream_(places.crossings().stream()),
        stream_bytes_(stream_ == kNone ? 0 : RoomFor(parts_.graph(), stream_)) {
    for (const int stage : stages_) {
      for (int layer : LayersOf(Content(stage))) held_.insert(layer);
    }
    context_.places = &places;
    context_.stages = &placement.places;
    context_.holds = [this](int layer) { return held_.count(layer) > 0; };
  }

  std::vector<StagedChunk> Chunks() {
    std::vector<StagedChunk> chunks;
    for (const int stage : stages_) chunks.push_back(MakeChunk(stage));
    return chunks;
  }

  // The calls of the update: part by part, inside a part layer by layer.
  std::vector<StagedCall> Update() {
    std::vector<StagedCall> calls;
    for (int number = 0; number < parts_.num_update_parts(); ++number) {
      for (const auto& [part, nodes] : nodes_) {
        if (part.phase != Phase::kUpdate || part.number != number) continue;
        std::vector<NodeId> mine = part.layer == kNoLayer ? nodes : Mine(part, nodes);
        if (!mine.empty()) calls.push_back(MakeCall(part, mine));
      }
    }
    return calls;
  }

  const std::set<int>& held() const { return held_; }

 private:
  const StageContent& Content(int stage) const {
    return placement_.stages[static_cast<size_t>(stage)];
  }

  // Embedding, layers and head of a chunk. One that passes have left nothing of keeps its calls,
  // of segments that do nothing; without a graph, of an evaluation, there are none.
  std::vector<int> LayersOf(const StageContent& content) const {
    std::vector<int> layers;
    if (nodes_.empty()) return layers;
    if (content.has_embedding) layers.push_back(kEmbeddingLayer);
    for (int64_t i = 0; i < content.num_layers; ++i) {
      layers.push_back(static_cast<int>(content.first_layer + i));
    }
    if (content.has_head) layers.push_back(parts_.graph().num_layers());
    return layers;
  }

  // Of a layer's update nodes, those this class runs: all of a layer it holds; of another layer
  // those of parameters it holds a copy of, the norm's share apart, which the owner counts.
  std::vector<NodeId> Mine(const Part& part, const std::vector<NodeId>& nodes) const {
    if (context_.holds(part.layer)) return nodes;
    std::vector<NodeId> mine;
    for (NodeId id : nodes) {
      const Node& node = parts_.graph().node(id);
      const ValueId param = parts_.ParamOf(node.outputs[0]);
      if (param == kNone || !HoldsCopy(param)) continue;
      if (!parts_.IsNormShare(id)) mine.push_back(id);
    }
    return mine;
  }

  bool HoldsCopy(ValueId param) const {
    if (!parts_.IsTied(param)) return false;
    for (NodeId user : parts_.users()[static_cast<size_t>(param)]) {
      const Node& node = parts_.graph().node(user);
      if (node.phase != Phase::kUpdate && context_.holds(node.layer)) return true;
    }
    return false;
  }

  StagedChunk MakeChunk(int stage) {
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
    AddRelay(stage, Phase::kForward, &chunk.forward);
    AddRelay(stage, Phase::kBackward, &chunk.backward);
    return chunk;
  }

  void AddLayer(int layer, bool first, bool last, StagedChunk* chunk) {
    const int64_t frame = chunk->frame_bytes;
    const int64_t input = frame - stream_bytes_;  // the previous layer left its output there
    chunk->frame_bytes += AlignUp(places_.frame_bytes(layer));
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
          binding = first ? StagedBinding{StagedBase::kInput, 0}
                          : StagedBinding{StagedBase::kFrame, input};
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
    if (HasBackward()) bind(CallOf({Phase::kBackward, 0, layer}), true);
    const Part reduce{Phase::kUpdate, kReducePart, layer};
    if (nodes_.count(reduce) > 0) chunk->reduce.push_back(CallOf(reduce));
  }

  // What the layers of a stage do not put into the bundle that it leaves.
  void AddRelay(int stage, Phase phase, std::vector<StagedCall>* calls) {
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

  // The place of the action that all layers of a stage see.
  static StagedBase SharedBase(Region region) {
    if (region == Region::kInput) return StagedBase::kInput;
    if (region == Region::kOutput) return StagedBase::kOutput;
    if (region == Region::kGradInput) return StagedBase::kGradInput;
    return region == Region::kGradOutput ? StagedBase::kGradOutput : StagedBase::kFrame;
  }

  bool HasBackward() const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const auto& entry) { return entry.first.phase == Phase::kBackward; });
  }

  StagedCall CallOf(const Part& part) {
    const auto nodes = nodes_.find(part);
    return MakeCall(part, nodes == nodes_.end() ? std::vector<NodeId>() : nodes->second);
  }

  StagedCall MakeCall(const Part& part, const std::vector<NodeId>& nodes) {
    StagedCall call;
    call.segment = folder_->Add(BuildSegment(context_, part, nodes));
    call.layer = part.layer;
    const std::vector<Formal>& formals = folder_->segment(call.segment).formals;
    call.bindings.resize(formals.size());
    for (size_t f = 0; f < formals.size(); ++f) {
      if (formals[f].region != Region::kNorm) continue;
      call.bindings[f].offset = places_.NormBase(part.layer);
    }
    return call;
  }

  const ValuePlaces& places_;
  const Parts& parts_;
  const std::map<Part, std::vector<NodeId>>& nodes_;
  const LayerPlacement& placement_;
  const std::vector<int> stages_;  // of the class, by chunk
  SegmentFolder* folder_;
  const ValueId stream_;
  const int64_t stream_bytes_;
  SegmentContext context_;
  std::set<int> held_;
};

class Stager {
 public:
  Stager(const Graph& train, const Graph& eval, const LayerPlacement& placement)
      : train_parts_(train),
        eval_parts_(eval),
        train_crossings_(train_parts_, placement, nullptr),
        eval_crossings_(eval_parts_, placement, &train_crossings_),
        train_bundles_(train_parts_, train_crossings_, NumStages(placement)),
        eval_bundles_(eval_parts_, eval_crossings_, NumStages(placement)),
        shared_(train_parts_, train_crossings_, placement),
        train_places_(train_parts_, train_crossings_, train_bundles_, shared_),
        eval_places_(eval_parts_, eval_crossings_, eval_bundles_, train_places_),
        placement_(placement) {}

  absl::StatusOr<StagedPlan> Run() {
    MGC_RETURN_IF_ERROR(train_crossings_.Check());
    MGC_RETURN_IF_ERROR(eval_crossings_.Check());
    MGC_RETURN_IF_ERROR(shared_.Check());
    plan_.mesh = train_parts_.graph().mesh();
    plan_.stages = placement_.places;
    const auto train_nodes = NodesByPart(train_parts_);
    const auto eval_nodes = NodesByPart(eval_parts_);
    for (int64_t c = 0; c < placement_.pp; ++c) {
      StagedClass made;
      made.coordinate = static_cast<int>(c);
      ClassStager train(train_places_, train_nodes, placement_, made.coordinate, &folder_);
      made.train = StepOf(train_places_, &train);
      ClassStager eval(eval_places_, eval_nodes, placement_, made.coordinate, &folder_);
      made.eval = StepOf(eval_places_, &eval);
      AddBlocks(train.held(), &made);
      plan_.classes.push_back(std::move(made));
    }
    plan_.segments = std::move(folder_).Take();
    return std::move(plan_);
  }

 private:
  static int NumStages(const LayerPlacement& placement) {
    return static_cast<int>(placement.stages.size());
  }

  static StagedStep StepOf(const ValuePlaces& places, ClassStager* stager) {
    StagedStep step;
    step.chunks = stager->Chunks();
    step.update = stager->Update();
    step.global_bytes = places.global_bytes();
    step.zeroed_global_bytes = places.zeroed_global_bytes();
    NameGlobals(places, &step.scalars, &step.reports);
    return step;
  }

  void AddBlocks(const std::set<int>& held, StagedClass* made) {
    for (int layer : held) made->blocks.push_back({BlockOf(layer, ""), layer, true});
    for (const auto& [block, classes] : shared_.blocks()) {
      const auto& [layer, name] = block;
      if (std::count(classes.begin(), classes.end(), made->coordinate) == 0) continue;
      made->blocks.push_back({BlockOf(layer, name), layer, held.count(layer) > 0});
    }
  }

  // The block of a layer's own parameters (`shared` is empty), or of some it shares; layers with
  // the same share it. Of several kinds of layers the second is called `layer.2`.
  int BlockOf(int layer, const std::string& shared) {
    const Graph& graph = train_parts_.graph();
    const std::string kind = shared.empty() ? LayerKind(layer, graph.num_layers()) : shared;
    ParamBlock block;
    const ValuePlaces::BlockBytes& bytes = train_places_.block(layer, shared);
    block.param_bytes = bytes.params;
    block.grad_bytes = bytes.grads;
    block.state_bytes = bytes.states;
    for (ValueId param : train_places_.ParamsOf(layer, shared)) {
      block.entries.push_back(EntryOf(param, layer));
    }
    block.name = kind;
    for (int number = 2;; ++number) {
      const auto found =
          std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                       [&](const ParamBlock& other) { return other.name == block.name; });
      if (found == plan_.blocks.end()) break;
      if (AreEqual(*found, block)) return static_cast<int>(found - plan_.blocks.begin());
      block.name = absl::StrCat(kind, ".", number);
    }
    plan_.blocks.push_back(std::move(block));
    return static_cast<int>(plan_.blocks.size()) - 1;
  }

  ParamEntry EntryOf(ValueId param, int layer) const {
    const Graph& graph = train_parts_.graph();
    const Value& value = graph.value(param);
    ParamEntry entry;
    entry.name = FoldName(value.name, layer, graph.num_layers());
    entry.type = value.type;
    entry.sharding = *value.sharding;
    entry.state_sharding = *value.sharding;
    entry.init = graph.FindInput(param)->attrs;
    entry.param_offset = train_places_.PlaceOf(param, layer).offset;
    const ValueId m = graph.FindValue(FirstMomentName(value.name));
    const ValueId v = graph.FindValue(SecondMomentName(value.name));
    const ValueId mean = graph.FindValue(MeanGradName(value.name));
    if (m == kNone || v == kNone || mean == kNone) return entry;
    entry.state_sharding = graph.sharding(m);
    entry.m_offset = train_places_.PlaceOf(m, layer).offset;
    entry.v_offset = train_places_.PlaceOf(v, layer).offset;
    const ValuePlace place = train_places_.PlaceOf(mean, layer);
    entry.mean_base = place.formal;
    entry.mean_offset = place.offset;
    return entry;
  }

  static void NameGlobals(const ValuePlaces& places, std::vector<NamedOffset>* scalars,
                          std::vector<NamedOffset>* reports) {
    const Graph& graph = places.parts().graph();
    for (const GraphInput& input : graph.inputs()) {
      if (input.kind != InputKind::kScalar) continue;
      scalars->push_back({graph.value(input.value).name, places.GlobalOffset(input.value)});
    }
    for (const GraphOutput& output : graph.outputs()) {
      if (output.kind != OutputKind::kReport) continue;
      reports->push_back({output.name, places.GlobalOffset(places.parts().RootOf(output.value))});
    }
  }

  const Parts train_parts_;
  const Parts eval_parts_;
  const Crossings train_crossings_;
  const Crossings eval_crossings_;
  const Bundles train_bundles_;
  const Bundles eval_bundles_;
  const SharedParams shared_;
  const ValuePlaces train_places_;
  const ValuePlaces eval_places_;
  const LayerPlacement& placement_;
  SegmentFolder folder_;
  StagedPlan plan_;
};

}  // namespace

absl::StatusOr<StagedPlan> Stage(const Graph& train, const Graph& eval,
                                 const LayerPlacement& placement) {
  return Stager(train, eval, placement).Run();
}

}  // namespace mgc
