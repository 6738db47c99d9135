// Where the values of a local graph live that outlast their segment: the place of each relative to
// a formal, the same for every class and, up to the layer's number, for equal layers.

#ifndef MGC_PASSES_PLAN_STAGE_VALUE_PLACES_H_
#define MGC_PASSES_PLAN_STAGE_VALUE_PLACES_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/stage/bundles.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/shared_params.h"

namespace mgc {

// Bytes one rank makes room for, rounded up to the slot alignment.
int64_t RoomFor(const Graph& graph, ValueId id);

class ValuePlaces {
 public:
  // Of the training step, or of an evaluation, where parameters take the places they have in the
  // training step. All arguments, `parts`, `crossings`, `bundles` and `layers` of one graph,
  // outlive this.
  ValuePlaces(const Parts& parts, const Crossings& crossings, const Bundles& bundles,
              const LayerMap& layers, const SharedParams& shared)
      : ValuePlaces(parts, crossings, bundles, layers, &shared, nullptr) {}
  ValuePlaces(const Parts& parts, const Crossings& crossings, const Bundles& bundles,
              const LayerMap& layers, const ValuePlaces& trained)
      : ValuePlaces(parts, crossings, bundles, layers, nullptr, &trained) {}

  const Parts& parts() const { return parts_; }
  const Crossings& crossings() const { return crossings_; }
  const Bundles& bundles() const { return bundles_; }
  // Null in an evaluation.
  const SharedParams* shared() const { return shared_; }
  // Place of a value that outlasts its segment, seen from a part of layer `layer`.
  ValuePlace PlaceOf(ValueId id, int layer) const;
  // The layer whose blocks hold an accumulator or gradient.
  int GradLayer(ValueId root) const { return grad_layer_[Index(root)]; }

  // Of the working copies that a layer of a class makes. Those that other layers have as well lie
  // behind its own; where they are not made, because of FirstCopy, they take no room.
  int64_t copy_bytes(int layer, const std::function<bool(int layer)>& holds) const;
  // Of the copies that layers have of one parameter, alike, the first whose layer is held; for all
  // other values the value itself.
  ValueId FirstCopy(ValueId id, const std::function<bool(int layer)>& holds) const;
  // Of what a layer gathers for one forward or backward, and of gradients on their way into pieces.
  int64_t gathered_bytes(int layer) const;
  int64_t owed_bytes(int layer) const;
  int64_t frame_bytes(int layer) const;
  // Place of a value that layers of several stages or of one stage read (Crossings::IsKept), seen
  // from a stage.
  ValuePlace PlaceInStage(ValueId id, int stage) const;
  // What the layers of a stage share of its frame.
  int64_t shared_frame_bytes(int stage) const;
  int64_t global_bytes() const { return global_bytes_; }
  // The first bytes of the globals are zero at the start of a step.
  int64_t zeroed_global_bytes() const { return zeroed_global_bytes_; }
  // Whether an input is a number of the step: given to it, or carried to the next.
  bool IsNumber(const GraphInput& input) const;
  int64_t GlobalOffset(ValueId id) const { return places_[Index(id)].offset; }
  // Offset in the globals of the first norm entry of the parameters of a layer of the model.
  int64_t NormBase(int layer) const;

  // Bytes of a layer's block by kind: of its own ("") or of parameters shared with other layers.
  struct BlockBytes {
    int64_t params = 0;
    int64_t grads = 0;
    int64_t states = 0;
  };
  const BlockBytes& block(int layer, const std::string& name) const;
  // The parameters of a block, in order.
  std::vector<ValueId> ParamsOf(int layer, const std::string& name) const;

 private:
  ValuePlaces(const Parts& parts, const Crossings& crossings, const Bundles& bundles,
              const LayerMap& layers, const SharedParams* shared, const ValuePlaces* trained);
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  // The block of a parameter or of what belongs to it, "" for one that only its layer uses.
  std::string BlockName(ValueId param) const { return shared_ ? shared_->BlockOf(param) : ""; }
  void PlaceInputs(const ValuePlaces* trained);
  void PlaceStacks();
  void PlaceNodes();
  void FindCopies();
  void PlaceCopies();
  ValueId MasterOf(ValueId copy) const;
  bool IsCopy(ValueId id) const;
  // The layer that makes a value.
  int MakerOf(ValueId id) const { return graph_.node(graph_.value(id).producer).layer; }
  bool PlaceInTurn(NodeId node, ValueId id);
  void PlaceFrameValue(const Node& node, ValueId id);
  void PlaceGlobal(ValueId id);

  const Parts& parts_;
  const Crossings& crossings_;
  const Bundles& bundles_;
  const LayerMap& layers_;
  const Graph& graph_;
  const SharedParams* const shared_;  // null in an evaluation
  std::vector<ValuePlace> places_;    // by root; gradients of a layer's own, without its kind
  std::vector<int> grad_layer_;       // by root
  std::map<std::pair<int, std::string>, BlockBytes> blocks_;
  std::map<ValueId, std::vector<ValueId>> copies_;  // by master, in program order
  std::map<int, int64_t> copy_bytes_;
  std::map<int, int64_t> own_copy_bytes_;
  std::map<std::pair<int, Phase>, int64_t> gathered_bytes_;
  std::map<int, int64_t> owed_bytes_;
  std::map<int, int64_t> frame_bytes_;
  std::map<int, int64_t> shared_frame_bytes_;  // by stage
  std::map<int, int64_t> norm_base_;           // by layer of the model
  int64_t global_bytes_ = 0;
  int64_t zeroed_global_bytes_ = 0;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_VALUE_PLACES_H_
