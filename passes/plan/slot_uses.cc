#include "passes/plan/slot_uses.h"

#include <algorithm>

namespace mgc {

std::vector<SlotUse> SlotUsesOf(const Segment& segment) {
  const int size = static_cast<int>(segment.instrs.size());
  std::vector<int> wait_at(static_cast<size_t>(segment.num_collectives), size);
  for (int i = 0; i < size; ++i) {
    const Instr& instr = segment.instrs[static_cast<size_t>(i)];
    if (instr.kind == InstrKind::kWait) wait_at[static_cast<size_t>(instr.collective)] = i;
  }
  std::vector<SlotUse> uses(segment.slots.size());
  for (int i = 0; i < size; ++i) {
    const Instr& instr = segment.instrs[static_cast<size_t>(i)];
    const bool starts = instr.kind == InstrKind::kStart;
    const int busy = starts ? wait_at[static_cast<size_t>(instr.collective)] : i;
    for (const auto* slots : {&instr.inputs, &instr.outputs}) {
      for (int slot : *slots) {
        SlotUse& use = uses[static_cast<size_t>(slot)];
        if (use.first < 0) use.first = i;
        if (use.last < i) use.held = use.busy;
        use.last = i;
        use.busy = std::max(use.busy, busy);
      }
    }
  }
  return uses;
}

bool FitsInPlace(const Segment& segment, const Instr& instr, size_t result, size_t operand) {
  const int from = instr.inputs[operand];
  const int to = instr.outputs[result];
  return instr.op != nullptr && MayTakePlace(*instr.op, result, operand) &&
         segment.slots[static_cast<size_t>(from)].bytes ==
             segment.slots[static_cast<size_t>(to)].bytes &&
         std::count(instr.inputs.begin(), instr.inputs.end(), from) == 1;
}

}  // namespace mgc
