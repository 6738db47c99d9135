// What crosses the cuts of a pipeline: between two neighbouring stages one contiguous bundle of
// values in forward, one of gradients in backward.
//
//   layers      0: %x %mask    1: %y         2: %z
//   stages      0              1             2
//   bundles        [%x|%mask]     [%y|%mask]           stage 1 passes %mask through
//
// A bundle holds what is made on one side of the cut and read on the other, however far away: a
// value passes through every stage between its maker and its last reader. The residual stream comes
// first, the rest in program order, each at the next multiple of kSlotAlignment. A cut that nothing
// crosses has no bundle.
//
// A stage reads what it needs where the bundle was received. It writes what it makes right into the
// bundle that it leaves, unless its own backward reads the value too: then it keeps the value in
// its frame and copies it. What only passes through is copied from bundle to bundle.

#ifndef MGC_PASSES_PLAN_STAGE_BUNDLES_H_
#define MGC_PASSES_PLAN_STAGE_BUNDLES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/plan/formal.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// Where a value lies behind a formal.
struct ValuePlace {
  Formal formal;
  int64_t offset = 0;
};

class Bundles {
 public:
  // Of forward and backward nodes, in `num_stages` stages. `parts` and `crossings` outlive this. In
  // a folded model bundles are not asked for: each is a value of the residual stream, which the
  // stage's last layer makes (passes/plan/stage/check_fold.h).
  Bundles(const Parts& parts, const Crossings& crossings, const LayerMap& layers, int num_stages);

  // Where `stage` has a value that several layers read: in the bundle that it takes, or, of a value
  // that it makes, in the one that it leaves. Nothing where its frame has it.
  absl::optional<ValuePlace> PlaceIn(ValueId id, int stage) const;
  // Where a value lies in the bundle that `stage` leaves; the value is in it.
  ValuePlace PlaceLeft(ValueId id, int stage) const;
  // What a stage copies into the bundle that it leaves in a phase, in the bundle's order.
  std::vector<ValueId> HandedOn(int stage, Phase phase) const;

 private:
  // Values with their offsets.
  using Bundle = std::vector<std::pair<ValueId, int64_t>>;

  void Add(ValueId id, int num_stages);
  void Place(Bundle* bundle) const;
  const Bundle& LeftBy(int stage, Phase phase) const {
    return (phase == Phase::kForward ? forward_ : backward_)[static_cast<size_t>(stage)];
  }
  bool IsLeft(ValueId id, int stage) const;
  bool IsReadInBackward(ValueId id, int stage) const;
  ValuePlace PlaceAt(Region region, ValueId id, int left_by) const;

  const Parts& parts_;
  const Graph& graph_;
  const Crossings& crossings_;
  std::vector<Bundle> forward_;   // by the stage that leaves it
  std::vector<Bundle> backward_;  // likewise
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_BUNDLES_H_
