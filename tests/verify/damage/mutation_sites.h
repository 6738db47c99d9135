// Where mutations find something to damage.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MUTATION_SITES_H_
#define MGC_TESTS_VERIFY_DAMAGE_MUTATION_SITES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"
#include "tests/fuzz/dice.h"

namespace mgc {

// An instruction of a segment.
struct InstrPlace {
  Segment* segment = nullptr;
  size_t index = 0;

  Instr& instr() const { return segment->instrs[index]; }
  Slot& in(size_t k) const { return segment->slots[static_cast<size_t>(instr().inputs[k])]; }
  Slot& out(size_t k) const { return segment->slots[static_cast<size_t>(instr().outputs[k])]; }
  std::string Name() const;  // `layer.forward, instruction 4 all_reduce`
};
using InstrFilter = std::function<bool(const Segment&, const Instr&)>;
std::vector<InstrPlace> InstrsWhere(Plan* plan, const InstrFilter& filter);

// Picks one and says which; false where there is none.
bool PickPlace(Plan* plan, Dice* dice, const InstrFilter& filter, InstrPlace* place,
               std::string* what);

InstrFilter IsStart();
InstrFilter IsStartOf(absl::string_view op);
InstrFilter IsLabeled(absl::string_view label);  // a start with that `label`
InstrFilter IsCompute();
InstrFilter IsComputeOf(absl::string_view op);

// A slot that some instruction names.
struct SlotPlace {
  Segment* segment = nullptr;
  size_t index = 0;

  Slot& slot() const { return segment->slots[index]; }
  std::string Name() const;
};
std::vector<SlotPlace> SlotsInUse(Plan* plan);
// Whether an instruction writes it.
bool IsWritten(const Segment& segment, size_t slot);

// A call in one of a class' lists.
struct CallPlace {
  PlanClass* rank_class = nullptr;
  std::vector<Call>* list = nullptr;
  size_t index = 0;
  const Segment* segment = nullptr;

  Call& call() const { return (*list)[index]; }
  std::string Name() const;
};
std::vector<CallPlace> AllCalls(Plan* plan);

// A program of a class.
struct ProgramPlace {
  PlanClass* rank_class = nullptr;
  Program* program = nullptr;
  std::vector<Chunk>* chunks = nullptr;
  bool eval = false;

  std::string Name() const;
};
std::vector<ProgramPlace> AllPrograms(Plan* plan);
Action* FindAction(Program* program, ActionKind kind, int chunk, int64_t micro_batch);
Transfer* FindTransfer(Program* program, TransferKind kind, int chunk, int64_t micro_batch);

// Transfers name a number of collectives of an action. Moves them along when collective `number` of
// a segment is taken out (by -1) or put in before it (by 1); to be called before the change.
void ShiftIssued(Plan* plan, const Segment* segment, int number, int by);
// Numbers a segment's collectives by the order of their starts.
void Renumber(Segment* segment);
// The instruction that waits for what `start` starts, or the number of instructions.
size_t WaitOf(const Segment& segment, size_t start);
// Takes a collective out of its segment, start and wait.
void EraseCollective(Plan* plan, const InstrPlace& start);
// Makes a copy of a slot and returns its number.
int CloneSlot(Segment* segment, int slot);

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MUTATION_SITES_H_
