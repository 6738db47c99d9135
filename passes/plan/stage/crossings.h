// Which values pass from one layer to others, and how they do.
//
// The residual stream is the one value that a layer hands to its neighbour alone, in forward
// upwards, its gradient in backward downwards: inside a stage from place to place between the
// layers. All else that layers read of each other (a mask, a skip over layers, a second stream) is
// kept where all layers of a stage find it. What of both goes from one stage to others:
// passes/plan/stage/bundles.h.

#ifndef MGC_PASSES_PLAN_STAGE_CROSSINGS_H_
#define MGC_PASSES_PLAN_STAGE_CROSSINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/graph.h"
#include "passes/config/place_layers.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// The stage of every layer of a graph, embedding and head among them; of one that stands for
// several, that of the first.
std::map<int, int> StagesByLayer(const LayerPlacement& placement, const LayerMap& layers);

class Crossings {
 public:
  // `parts` outlives this. With `trained`, of the training graph, the residual stream of an
  // evaluation has its size.
  Crossings(const Parts& parts, const LayerPlacement& placement, const LayerMap& layers,
            const Crossings* trained);

  // Every node belongs to a layer: stage_c3, InvalidArgument.
  absl::Status Check() const;

  // Whether a value is of the residual stream or its gradient.
  bool IsStream(ValueId id) const { return kinds_[Index(id)] == Kind::kStream; }
  // Whether it is read in other layers and is not.
  bool IsKept(ValueId id) const { return kinds_[Index(id)] == Kind::kKept; }
  // A value of the residual stream, kNone where there is none.
  ValueId stream() const { return stream_; }
  // Where a layer lies along the pipeline.
  int StageOf(int layer) const;
  // The node that makes a value; it has one.
  const Node& MakerOf(ValueId id) const;
  int64_t BytesOf(ValueId id) const;  // on one rank

 private:
  enum class Kind : uint8_t { kInLayer, kStream, kKept };

  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  bool LeavesLayer(ValueId id) const;
  bool LeavesStage(ValueId id) const;
  const Node* FirstOddUser(ValueId id) const;

  const Parts& parts_;
  const Graph& graph_;
  std::map<int, int> stage_of_;  // by layer
  std::vector<Kind> kinds_;      // by value
  ValueId stream_ = kNone;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_CROSSINGS_H_
