// Which bytes of a class' arena its instructions touch.

#ifndef MGC_GRAPH_VERIFY_COMMON_MEMORY_RANGES_H_
#define MGC_GRAPH_VERIFY_COMMON_MEMORY_RANGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/plan/step_tables.h"

namespace mgc {

// Bytes [begin, end).
inline bool Overlap(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }
inline bool Equal(const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; }
std::string ToString(const Range& range);  // `[64, 128)`

// Sorted, without empty ones; those that touch are joined.
std::vector<Range> Merged(std::vector<Range> ranges);
// Whether a merged list overlaps the range.
bool Touches(const std::vector<Range>& merged, const Range& range);

// What an action's addresses are added to; kAbsolute: 0. -1 where the action has none.
int64_t BaseOf(BaseKind base, const Action& action);
// Where a slot of a call lies when `action` runs it.
Range RangeOf(const Slot& slot, const Call& call, const Action& action);

// Ranges behind each kind of base that calls touch, merged.
struct Footprint {
  std::vector<Range> of[6];  // by BaseKind

  const std::vector<Range>& Of(BaseKind base) const { return of[static_cast<int>(base)]; }
  int64_t End(BaseKind base) const { return Of(base).empty() ? 0 : Of(base).back().end; }
};

// Footprints of the calls of a plan; slots that no instruction names are left out.
class Footprints {
 public:
  explicit Footprints(const Plan& plan);
  Footprint Of(const std::vector<Call>& calls) const;

 private:
  std::vector<std::vector<std::vector<Range>>> segments_;  // by formal
};

// Where stages hand over to stages of their own class, of all micro-batches; merged.
std::vector<Range> HandedOver(const StepTables& tables, const StepClass& walk);

// The actions of a step without all micro-batches but the last: what every micro-batch does alike
// is in them once.
std::vector<const StepAction*> ProjectedActions(const StepTables& tables, const StepClass& walk);

// Why a program is too long to be proved in sensible time; empty if it is not. Plans that somebody
// computes with are hundreds of times smaller.
std::string TooLong(const StepTables& tables);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_MEMORY_RANGES_H_
