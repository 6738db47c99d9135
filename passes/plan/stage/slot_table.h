// The slots and formals of a segment while it is built: which values it touches and where they
// live, seen from the class that runs it.

#ifndef MGC_PASSES_PLAN_STAGE_SLOT_TABLE_H_
#define MGC_PASSES_PLAN_STAGE_SLOT_TABLE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/value_places.h"

namespace mgc {

// What differs between the classes that run one part.
struct SegmentContext {
  const ValuePlaces* places = nullptr;
  const std::vector<StagePlace>* stages = nullptr;
  // Whether the class holds the values of a layer.
  std::function<bool(int layer)> holds;
};

// Number of a segment's formal, added when it is new.
int NumberOf(const Formal& formal, Segment* segment);

class SlotTable {
 public:
  // Adds to the slots and formals of `segment`, which outlives the table.
  SlotTable(const SegmentContext& context, const Part& part, Segment* segment);

  // The slot of a value, added when it is new.
  int Of(ValueId id);
  bool Has(ValueId id) const { return slots_.count(id) > 0; }
  // Lets the memory of `held` stand for that of `value` (both by their roots).
  void StandIn(ValueId value, ValueId held);

 private:
  bool IsStream(ValueId id) const { return context_.places->crossings().IsStream(id); }
  std::string NameOf(ValueId id, const ValuePlace& place);
  ValuePlace PlaceOf(ValueId id);
  std::map<ValueId, ValueId>::iterator FindStandIn(ValueId root);

  const SegmentContext& context_;
  const Parts& parts_;
  const Graph& graph_;
  const Part part_;
  Segment& segment_;
  std::map<ValueId, int> slots_;
  std::map<ValueId, ValueId> stands_for_;  // roots this class holds elsewhere
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_SLOT_TABLE_H_
