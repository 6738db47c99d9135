// One graph, of the training step or of the evaluation, seen by one class of a pipeline: the calls
// of its chunks and of its update.
//
// Layers and parts here are the model's; those of the graph, which may be folded
// (passes/fold/fold_model.h), are called kept.

#ifndef MGC_PASSES_PLAN_STAGE_CLASS_STAGER_H_
#define MGC_PASSES_PLAN_STAGE_CLASS_STAGER_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/config/place_layers.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/stage/fold_segments.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/slot_table.h"
#include "passes/plan/stage/value_places.h"

namespace mgc {

// The nodes of every part of one graph.
using PartNodes = std::map<Part, std::vector<NodeId>>;
PartNodes NodesByPart(const Parts& parts);

// Of one graph, the segments that have been made of its parts: a class makes the same of a part as
// another one that holds the same layers of the graph.
using SegmentCache = std::map<std::set<int>, std::map<Part, int>>;

// What all classes have in common.
struct StagedGraph {
  const ValuePlaces& places;
  const PartNodes& nodes;
  const LayerPlacement& placement;
  const LayerMap& layers;
};

class ClassStager {
 public:
  // `coordinate` of the class along pp. Segments go to `folder`; what the arguments name outlives
  // this.
  ClassStager(const StagedGraph& graph, int coordinate, SegmentCache* cache, SegmentFolder* folder);
  ClassStager(const ClassStager&) = delete;
  ClassStager& operator=(const ClassStager&) = delete;

  std::vector<StagedChunk> Chunks();
  // The calls of the update, after those of the chunks: part by part, inside a part layer by layer.
  // The first waits for what the chunks' calls have left running.
  std::vector<StagedCall> Update();
  // Of the working copies that its layers read, those of a step and those in turn.
  int64_t copy_bytes() const { return copy_bytes_; }
  // Of gradients on their way into pieces.
  int64_t owed_bytes() const { return owed_of_turn_[0] + owed_of_turn_[1]; }
  // Whether all segments that it was the first to need have the source locations of their layers.
  bool has_places() const { return has_places_; }
  // The layers of the class, embedding and head among them.
  const std::set<int>& held() const { return held_; }

 private:
  const StageContent& Content(int stage) const {
    return placement_.stages[static_cast<size_t>(stage)];
  }
  std::vector<int> LayersOf(const StageContent& content) const;
  // A part as the graph has it.
  Part Kept(const Part& part) const {
    return {part.phase, part.number, layers_.KeptFor(part.layer)};
  }
  bool Has(const Part& part) const { return nodes_.count(Kept(part)) > 0; }
  std::set<int> UpdatedLayers() const;
  std::vector<NodeId> Mine(const Part& part, const std::vector<NodeId>& nodes) const;
  bool HoldsSource(const Node& node) const;
  bool HoldsCopy(ValueId param) const;
  StagedChunk MakeChunk(int stage);
  void TakeTurns();
  int64_t PlaceInTurn(Region region, int layer) const;
  std::vector<StagedCall> InTurns(Phase phase, const std::vector<StagedCall>& calls);
  void AddLastBackward(StagedChunk* chunk);
  void AddLayer(int layer, bool first, bool last, StagedChunk* chunk);
  void AddRelay(int stage, Phase phase, std::vector<StagedCall>* calls);
  std::vector<NodeId> MadeOf(const std::vector<NodeId>& nodes) const;
  StagedCall CallOf(const Part& part);
  StagedCall MakeCall(const Part& part, const std::vector<NodeId>& nodes);

  const ValuePlaces& places_;
  const Parts& parts_;
  const PartNodes& nodes_;
  const LayerPlacement& placement_;
  const LayerMap& layers_;
  const std::vector<int> stages_;  // of the class, by chunk
  SegmentFolder* folder_;
  const ValueId stream_;
  const int64_t stream_bytes_;
  SegmentContext context_;
  std::set<int> held_;
  std::set<int> held_kept_;
  std::map<Part, int>* segments_;  // by part of the graph
  bool has_backward_ = false;
  bool has_places_ = true;
  std::map<std::string, int64_t> copy_base_;  // by BlockOfLayer
  int64_t copy_bytes_ = 0;
  // By turn, that of even layers first: the most that a layer takes.
  std::array<int64_t, 2> gathered_of_turn_ = {0, 0};
  std::array<int64_t, 2> owed_of_turn_ = {0, 0};
  bool runs_on_ = false;  // collectives run when the calls that start them have ended
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_CLASS_STAGER_H_
