// When the slots of a segment are used, in instruction numbers.

#ifndef MGC_PASSES_PLAN_SLOT_USES_H_
#define MGC_PASSES_PLAN_SLOT_USES_H_

#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// What a collective reads or writes is in use until it is waited for, else until the segment ends.
struct SlotUse {
  int first = -1;  // -1: never used
  int last = -1;
  int busy = -1;  // `last`, or when the last of its collectives is waited for
  int held = -1;  // the same of all uses but the last

  // Whether the instruction is the last to use it, and no collective has it then.
  bool EndsAt(int instr) const { return last == instr && held < instr; }
};

// By slot.
std::vector<SlotUse> SlotUsesOf(const Segment& segment);

// Whether result `result` of an instruction may take the place of operand `operand`, as far as op
// and sizes say: its bytes are those of the operand, and the operand is named once.
bool FitsInPlace(const Segment& segment, const Instr& instr, size_t result, size_t operand);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_SLOT_USES_H_
