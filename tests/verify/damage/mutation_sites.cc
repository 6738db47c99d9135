#include "tests/verify/damage/mutation_sites.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"

namespace mgc {

std::string InstrPlace::Name() const {
  const Instr& i = instr();
  return absl::StrCat(segment->name, ", instruction ", index, " ",
                      i.op != nullptr              ? i.op->name
                      : i.kind == InstrKind::kLoad ? "load"
                                                   : "wait");
}

std::vector<InstrPlace> InstrsWhere(Plan* plan, const InstrFilter& filter) {
  std::vector<InstrPlace> places;
  for (Segment& segment : plan->segments) {
    for (size_t i = 0; i < segment.instrs.size(); ++i) {
      if (filter(segment, segment.instrs[i])) places.push_back({&segment, i});
    }
  }
  return places;
}

bool PickPlace(Plan* plan, Dice* dice, const InstrFilter& filter, InstrPlace* place,
               std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, filter);
  if (places.empty()) return false;
  *place = *dice->Pick(&places);
  *what = place->Name();
  return true;
}

InstrFilter IsStart() {
  return [](const Segment&, const Instr& instr) { return instr.kind == InstrKind::kStart; };
}
InstrFilter IsStartOf(absl::string_view op) {
  return [op = std::string(op)](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kStart && instr.op->name == op;
  };
}
InstrFilter IsLabeled(absl::string_view label) {
  return [label = std::string(label)](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kStart && instr.attrs.Text("label") == label;
  };
}
InstrFilter IsCompute() {
  return [](const Segment&, const Instr& instr) { return instr.kind == InstrKind::kCompute; };
}
InstrFilter IsComputeOf(absl::string_view op) {
  return [op = std::string(op)](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kCompute && instr.op->name == op;
  };
}

std::string SlotPlace::Name() const {
  return absl::StrCat(segment->name, ", slot ", index, " ", slot().name);
}

std::vector<SlotPlace> SlotsInUse(Plan* plan) {
  std::vector<SlotPlace> places;
  for (Segment& segment : plan->segments) {
    std::vector<bool> used(segment.slots.size(), false);
    for (const Instr& instr : segment.instrs) {
      for (int slot : instr.inputs) used[static_cast<size_t>(slot)] = true;
      for (int slot : instr.outputs) used[static_cast<size_t>(slot)] = true;
    }
    for (size_t s = 0; s < used.size(); ++s) {
      if (used[s]) places.push_back({&segment, s});
    }
  }
  return places;
}

bool IsWritten(const Segment& segment, size_t slot) {
  return std::any_of(segment.instrs.begin(), segment.instrs.end(), [&](const Instr& instr) {
    return std::count(instr.outputs.begin(), instr.outputs.end(), static_cast<int>(slot)) > 0;
  });
}

std::string CallPlace::Name() const {
  return absl::StrCat("class ", rank_class->coordinate, ", call ", index, " of ", segment->name,
                      " for layer ", call().layer);
}

std::vector<CallPlace> AllCalls(Plan* plan) {
  std::vector<CallPlace> places;
  for (PlanClass& c : plan->classes) {
    const auto add = [&](std::vector<Call>* list) {
      for (size_t i = 0; i < list->size(); ++i) {
        const size_t segment = static_cast<size_t>((*list)[i].segment);
        places.push_back({&c, list, i, &plan->segments[segment]});
      }
    };
    for (auto* chunks : {&c.chunks, &c.eval_chunks}) {
      for (Chunk& chunk : *chunks) {
        for (std::vector<Call>* list : ListsOf(&chunk)) add(list);
      }
    }
    add(&c.update);
    add(&c.eval_update);
  }
  return places;
}

std::string ProgramPlace::Name() const {
  return absl::StrCat("class ", rank_class->coordinate, eval ? ", evaluation" : ", training");
}

std::vector<ProgramPlace> AllPrograms(Plan* plan) {
  std::vector<ProgramPlace> places;
  for (PlanClass& c : plan->classes) {
    places.push_back({&c, &c.train, &c.chunks, false});
    places.push_back({&c, &c.eval, &c.eval_chunks, true});
  }
  return places;
}

Action* FindAction(Program* program, ActionKind kind, int chunk, int64_t micro_batch) {
  for (Action& action : program->compute) {
    const ActionRef& ref = action.ref;
    if (ref.kind == kind && ref.chunk == chunk && ref.micro_batch == micro_batch) return &action;
  }
  return nullptr;
}

Transfer* FindTransfer(Program* program, TransferKind kind, int chunk, int64_t micro_batch) {
  for (Transfer& transfer : program->transfers) {
    const TransferRef& ref = transfer.ref;
    if (ref.kind == kind && ref.chunk == chunk && ref.micro_batch == micro_batch) return &transfer;
  }
  return nullptr;
}

void ShiftIssued(Plan* plan, const Segment* segment, int number, int by) {
  for (const ProgramPlace& place : AllPrograms(plan)) {
    for (Transfer& transfer : place.program->transfers) {
      int before = 0;  // collectives of the anchor's earlier calls
      int shift = 0;
      for (const Call& call : CallsOf(*plan, *place.rank_class, place.eval, transfer.anchor)) {
        const Segment* called = &plan->segments[static_cast<size_t>(call.segment)];
        if (called == segment && transfer.issued > before + number) shift += by;
        before += called->num_collectives;
      }
      transfer.issued += shift;
    }
  }
}

void Renumber(Segment* segment) {
  std::map<int, int> numbers;
  for (const Instr& instr : segment->instrs) {
    if (instr.kind != InstrKind::kStart) continue;
    numbers.emplace(instr.collective, static_cast<int>(numbers.size()));
  }
  for (Instr& instr : segment->instrs) {
    if (instr.collective < 0) continue;
    const auto found = numbers.find(instr.collective);
    if (found != numbers.end()) instr.collective = found->second;
  }
  segment->num_collectives = static_cast<int>(numbers.size());
}

size_t WaitOf(const Segment& segment, size_t start) {
  const int number = segment.instrs[start].collective;
  size_t i = 0;
  while (i < segment.instrs.size() &&
         (segment.instrs[i].kind != InstrKind::kWait || segment.instrs[i].collective != number)) {
    ++i;
  }
  return i;
}

void EraseCollective(Plan* plan, const InstrPlace& start) {
  const int number = start.instr().collective;
  ShiftIssued(plan, start.segment, number, -1);
  std::vector<Instr>& instrs = start.segment->instrs;
  instrs.erase(std::remove_if(instrs.begin(), instrs.end(),
                              [&](const Instr& i) { return i.collective == number; }),
               instrs.end());
  Renumber(start.segment);
}

int CloneSlot(Segment* segment, int slot) {
  const Slot copy = segment->slots[static_cast<size_t>(slot)];
  segment->slots.push_back(copy);
  return static_cast<int>(segment->slots.size()) - 1;
}

}  // namespace mgc
