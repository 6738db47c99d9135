// Which values pass from one layer to others, and how they do.
//
// The residual stream is the one value that a layer hands to its neighbour, in forward upwards, its
// gradient in backward downwards: it alone may cross from one stage to the next, through boundary
// slots. All else that layers of one stage read of each other (a mask, a skip over layers, a second
// stream) is kept beside their frames.

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
#include "passes/plan/stage/parts.h"

namespace mgc {

class Crossings {
 public:
  // `parts` outlives this. With `trained`, of the training graph, the residual stream of an
  // evaluation has its size.
  Crossings(const Parts& parts, const LayerPlacement& placement, const Crossings* trained);

  // Every value that crosses from one stage to the next is of the residual stream, and the stream
  // crosses every cut: stage_c1, stage_c2, stage_c4, stage_c5, InvalidArgument. Every node belongs
  // to a layer: stage_c3.
  absl::Status Check() const;

  // Whether a value is of the residual stream or its gradient.
  bool IsStream(ValueId id) const { return kinds_[Index(id)] == Kind::kStream; }
  // Whether it is read in other layers and is not.
  bool IsKept(ValueId id) const { return kinds_[Index(id)] == Kind::kKept; }
  // A value of the residual stream, kNone where there is none.
  ValueId stream() const { return stream_; }
  // Where a layer lies along the pipeline.
  int StageOf(int layer) const;

 private:
  enum class Kind : uint8_t { kInLayer, kStream, kKept };
  // What a layer hands to its neighbour in a phase.
  using Handed = std::map<std::pair<Phase, int>, ValueId>;

  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  int64_t BytesOf(ValueId id) const;  // on one rank
  const Node& MakerOf(ValueId id) const;
  bool LeavesLayer(ValueId id) const;
  bool LeavesStage(ValueId id) const;
  const Node* FirstOddUser(ValueId id) const;
  absl::Status CheckLayers() const;
  absl::Status CheckKept(ValueId id) const;
  absl::Status CheckCuts() const;

  const Parts& parts_;
  const Graph& graph_;
  std::map<int, int> stage_of_;  // by layer
  std::vector<Kind> kinds_;      // by value
  Handed stream_of_;
  ValueId stream_ = kNone;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_CROSSINGS_H_
