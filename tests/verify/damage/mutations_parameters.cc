#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

ParamEntry* PickEntry(Plan* plan, Dice* dice, std::string* what) {
  ParamBlock* block = dice->Pick(&plan->blocks);
  if (block == nullptr || block->entries.empty()) return nullptr;
  ParamEntry* entry = dice->Pick(&block->entries);
  *what = entry->name;
  return entry;
}

// Where a parameter's tensors stand: its value, its gradient, its states.
std::vector<int64_t*> OffsetsOf(ParamEntry* entry) {
  std::vector<int64_t*> offsets = {&entry->param_offset, &entry->gradient_offset};
  for (ParamState& state : entry->states) offsets.push_back(&state.offset);
  return offsets;
}

bool OffsetShifted(Plan* plan, Dice* dice, std::string* what) {
  ParamEntry* entry = PickEntry(plan, dice, what);
  if (entry == nullptr) return false;
  std::vector<int64_t*> offsets = OffsetsOf(entry);
  **dice->Pick(&offsets) += dice->Flip() ? 64 : -64;
  return true;
}

// Two parameters of one block exchange an offset, or their names.
bool EntriesSwapped(Plan* plan, Dice* dice, std::string* what) {
  ParamBlock* block = dice->Pick(&plan->blocks);
  if (block == nullptr || block->entries.size() < 2) return false;
  ParamEntry& a = *dice->Pick(&block->entries);
  ParamEntry& b = *dice->Pick(&block->entries);
  if (&a == &b) return false;
  *what = absl::StrCat(a.name, " and ", b.name);
  const std::vector<int64_t*> of_a = OffsetsOf(&a), of_b = OffsetsOf(&b);
  const size_t both = std::min(of_a.size(), of_b.size());
  const size_t choice = dice->Below(both + 1);
  if (choice == both) {
    std::swap(a.name, b.name);
  } else {
    std::swap(*of_a[choice], *of_b[choice]);
  }
  return true;
}

bool MomentsSwapped(Plan* plan, Dice* dice, std::string* what) {
  ParamEntry* entry = PickEntry(plan, dice, what);
  if (entry == nullptr || entry->states.size() < 2) return false;
  std::swap(entry->states[0].offset, entry->states[1].offset);
  return true;
}

bool InitChanged(Plan* plan, Dice* dice, std::string* what) {
  ParamEntry* entry = PickEntry(plan, dice, what);
  if (entry == nullptr) return false;
  if (entry->init.Find("std") != nullptr && dice->Flip()) {
    entry->init.Set("std", entry->init.Real("std") * 2);
  } else {
    const std::string init = entry->init.Text("init");
    entry->init = {{"init", std::string(init == "ones" ? "zeros" : "ones")},
                   {"decay", entry->init.Int("decay")}};
  }
  return true;
}

bool DecayOfEntry(Plan* plan, Dice* dice, std::string* what) {
  ParamEntry* entry = PickEntry(plan, dice, what);
  if (entry == nullptr) return false;
  entry->init.Set("decay", 1 - entry->init.Int("decay"));
  return true;
}

bool StateSharding(Plan* plan, Dice* dice, std::string* what) {
  ParamEntry* entry = PickEntry(plan, dice, what);
  if (entry == nullptr || entry->state_sharding.storage.empty()) return false;
  entry->state_sharding.storage = AxisList();
  return true;
}

bool EntryDropped(Plan* plan, Dice* dice, std::string* what) {
  ParamBlock* block = dice->Pick(&plan->blocks);
  if (block == nullptr || block->entries.empty()) return false;
  const size_t i = dice->Below(block->entries.size());
  *what = block->entries[i].name;
  block->entries.erase(block->entries.begin() + static_cast<int64_t>(i));
  return true;
}

// --- Blocks of a class

HeldBlock* PickHeld(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = dice->Pick(&plan->classes);
  HeldBlock* held = dice->Pick(&c->blocks);
  if (held != nullptr) {
    *what = absl::StrCat("class ", c->coordinate, ", layer ", held->layer);
  }
  return held;
}

bool OwnerFlipped(Plan* plan, Dice* dice, std::string* what) {
  HeldBlock* held = PickHeld(plan, dice, what);
  if (held == nullptr || plan->blocks[static_cast<size_t>(held->block)].entries.empty()) {
    return false;
  }
  held->owner = !held->owner;
  return true;
}

bool HeldBaseShifted(Plan* plan, Dice* dice, std::string* what) {
  HeldBlock* held = PickHeld(plan, dice, what);
  if (held == nullptr) return false;
  int64_t HeldBlock::*const bases[] = {&HeldBlock::param_base, &HeldBlock::grad_base,
                                       &HeldBlock::state_base};
  held->*bases[dice->Below(3)] += dice->Flip() ? 64 : -64;
  return true;
}

bool HeldLayersSwapped(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = dice->Pick(&plan->classes);
  HeldBlock* a = dice->Pick(&c->blocks);
  HeldBlock* b = dice->Pick(&c->blocks);
  if (a == nullptr || a->block != b->block || a == b) return false;
  *what = absl::StrCat("class ", c->coordinate, ", layers ", a->layer, " and ", b->layer);
  std::swap(a->layer, b->layer);
  return true;
}

bool HeldDropped(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = dice->Pick(&plan->classes);
  if (c->blocks.empty()) return false;
  const size_t i = dice->Below(c->blocks.size());
  *what = absl::StrCat("class ", c->coordinate, ", layer ", c->blocks[i].layer);
  c->blocks.erase(c->blocks.begin() + static_cast<int64_t>(i));
  return true;
}

// --- Values of the whole step

std::vector<NamedAddress>* PickNamed(PlanClass* c, Dice* dice) {
  std::vector<NamedAddress>* const lists[] = {&c->scalars, &c->reports, &c->eval_reports};
  return lists[dice->Below(3)];
}

bool NamedShifted(Plan* plan, Dice* dice, std::string* what) {
  NamedAddress* named = dice->Pick(PickNamed(dice->Pick(&plan->classes), dice));
  if (named == nullptr) return false;
  *what = named->name;
  named->address += dice->Flip() ? 64 : 8;
  return true;
}

bool NamedSwapped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<NamedAddress>* list = PickNamed(dice->Pick(&plan->classes), dice);
  NamedAddress* a = dice->Pick(list);
  NamedAddress* b = dice->Pick(list);
  if (a == nullptr || a == b) return false;
  *what = absl::StrCat(a->name, " and ", b->name);
  std::swap(a->address, b->address);
  return true;
}

bool NamedDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<NamedAddress>* list = PickNamed(dice->Pick(&plan->classes), dice);
  if (list->empty()) return false;
  *what = list->back().name;
  list->pop_back();
  return true;
}

bool BatchMisstated(Plan* plan, Dice* dice, std::string* what) {
  int64_t Plan::*const sizes[] = {&Plan::global_batch_size, &Plan::micro_batch_size,
                                  &Plan::seq_length};
  const size_t choice = dice->Below(3);
  *what = absl::StrCat("size ", choice);
  plan->*sizes[choice] *= 2;
  return true;
}

}  // namespace

std::vector<MutationKind> ParameterMutations() {
  return {
      {"offset of a parameter off", OffsetShifted},
      {"parameters exchanged", EntriesSwapped},
      {"states exchanged", MomentsSwapped},
      {"start of a parameter changed", InitChanged},
      {"decay of a parameter flipped", DecayOfEntry},
      {"sharding of states changed", StateSharding},
      {"parameter dropped", EntryDropped},
      {"owner flipped", OwnerFlipped},
      {"base of a layer off", HeldBaseShifted},
      {"layers of blocks exchanged", HeldLayersSwapped},
      {"block dropped", HeldDropped},
      {"scalar or report elsewhere", NamedShifted},
      {"scalars or reports exchanged", NamedSwapped},
      {"scalar or report dropped", NamedDropped},
      {"batch misstated", BatchMisstated},
  };
}

}  // namespace mgc
