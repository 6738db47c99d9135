// How long the transient slots of a segment hold what is still needed, in instruction numbers.
//
//   0  %a = matmul(...)      %a   0 to 1    its last reader may put its result there:
//   1  %b = gelu(%a)         %b   1 to 2    %a and %b are one place, 0 to 2
//   2  %c = matmul(%b, ...)

#ifndef MGC_PASSES_PLAN_TRANSIENT_LIVES_H_
#define MGC_PASSES_PLAN_TRANSIENT_LIVES_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// Bytes that are needed from `begin` to `end`, both included.
struct Interval {
  int begin = 0;
  int end = 0;
  int64_t bytes = 0;
};

// Slots that follow each other in one place: a result takes that of an operand which nobody reads
// any more, where its op allows it (OpDef::in_place) and both have the same size.
struct TransientLife {
  std::vector<int> slots;  // in the order in which they are written
  Interval alive;          // bytes: a multiple of kSlotAlignment
};

// Of every transient slot that an instruction uses, in the order of their first slots' numbers.
// What a collective reads or writes is in use until it is waited for, else until the segment ends.
std::vector<TransientLife> TransientLives(const Segment& segment);

// The moment at which most bytes are needed, the first of several. No layout can do with less.
struct LiveMoment {
  int at = -1;  // -1: there are no intervals
  int64_t bytes = 0;
};
LiveMoment WorstMoment(const std::vector<Interval>& intervals);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TRANSIENT_LIVES_H_
