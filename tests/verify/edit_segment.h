// Mistakes in the element types of a compiled segment: casts where there were none.

#ifndef MGC_TESTS_VERIFY_EDIT_SEGMENT_H_
#define MGC_TESTS_VERIFY_EDIT_SEGMENT_H_

#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "graph/plan/plan.h"

namespace mgc {

// A segment of a plan that is being edited.
struct Edit {
  const Plan& plan;
  Segment& segment;

  Slot& SlotAt(int slot) const { return segment.slots[static_cast<size_t>(slot)]; }

  // A slot like another, of its own place and element type.
  int Like(int slot, DType dtype) const {
    Slot made = SlotAt(slot);
    made.type.dtype = dtype;
    made.formal = 0;
    made.offset = AlignUp(segment.transient_bytes);
    made.bytes = LocalElements(made.type, made.sharding, plan.mesh) * SizeOf(dtype);
    segment.transient_bytes = made.offset + made.bytes;
    segment.slots.push_back(made);
    return static_cast<int>(segment.slots.size()) - 1;
  }

  // Puts a cast before instruction `at`; the slot it makes.
  int Cast(size_t at, int from, DType dtype) const {
    const int to = Like(from, dtype);
    Put(at, from, to);
    return to;
  }
  void Put(size_t at, int from, int to) const {
    Instr cast;
    cast.op = FindOp("cast");
    cast.attrs.Set(kDTypeAttr, std::string(NameOf(SlotAt(to).type.dtype)));
    cast.inputs = {from};
    cast.outputs = {to};
    cast.phase = segment.instrs[at == segment.instrs.size() ? at - 1 : at].phase;
    segment.instrs.insert(segment.instrs.begin() + static_cast<int64_t>(at), cast);
  }

  // Rounds an operand to bf16 and back.
  void RoundOperand(size_t instr, size_t operand) const {
    const int from = segment.instrs[instr].inputs[operand];
    const int narrow = Cast(instr, from, DType::kBF16);
    const int wide = Cast(instr + 1, narrow, DType::kF32);
    segment.instrs[instr + 2].inputs[operand] = wide;
  }

  // Lets an instruction read an operand in bf16.
  void NarrowOperand(size_t* instr, size_t operand) const {
    const int narrow = Cast(*instr, segment.instrs[*instr].inputs[operand], DType::kBF16);
    segment.instrs[++*instr].inputs[operand] = narrow;
  }

  // Lets an instruction make its result in bf16, and widens it behind.
  void NarrowResult(size_t instr) const {
    const int wide = segment.instrs[instr].outputs[0];
    const int narrow = Like(wide, DType::kBF16);
    segment.instrs[instr].outputs[0] = narrow;
    Attrs kept;
    for (const Attrs::Entry& entry : segment.instrs[instr].attrs) {
      if (entry.first != kDTypeAttr) kept.Set(entry.first, entry.second);
    }
    segment.instrs[instr].attrs = kept;
    Put(instr + 1, narrow, wide);
  }

  // Lets a collective move bf16: its operands are rounded before, its results widened behind.
  void NarrowStart(size_t instr) const {
    const int collective = segment.instrs[instr].collective;
    for (size_t part = 0; part < segment.instrs[instr].inputs.size(); ++part) {
      const int narrow = Cast(instr, segment.instrs[instr].inputs[part], DType::kBF16);
      Instr& start = segment.instrs[++instr];
      start.inputs[part] = narrow;
      const int wide = start.outputs[part];
      start.outputs[part] = Like(wide, DType::kBF16);
      size_t wait = instr;
      while (segment.instrs[wait].kind != InstrKind::kWait ||
             segment.instrs[wait].collective != collective) {
        ++wait;
      }
      Put(wait + 1, segment.instrs[instr].outputs[part], wide);
    }
  }

  // Lets a collective move what its first operand was rounded from.
  void WidenStart(size_t instr) const {
    size_t cast = instr;
    while (segment.instrs[cast].outputs != std::vector<int>{segment.instrs[instr].inputs[0]}) {
      --cast;
    }
    segment.instrs[instr].inputs[0] = segment.instrs[cast].inputs[0];
    segment.instrs[instr].outputs[0] = Like(segment.instrs[instr].outputs[0], DType::kF32);
  }
};

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_EDIT_SEGMENT_H_
