#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

ProgramPlace PickProgram(Plan* plan, Dice* dice) {
  std::vector<ProgramPlace> programs = AllPrograms(plan);
  return *dice->Pick(&programs);
}

std::string NameOf(const ProgramPlace& place, const Action& action) {
  return absl::StrCat(place.Name(), ", ", LetterOf(action.ref.kind), action.ref.micro_batch,
                      " of chunk ", action.ref.chunk);
}

bool ActionsSwapped(Plan* plan, Dice* dice, std::string* what) {
  const ProgramPlace place = PickProgram(plan, dice);
  std::vector<Action>& actions = place.program->compute;
  const size_t i = dice->Below(actions.size());
  if (i + 2 >= actions.size()) return false;
  *what = NameOf(place, actions[i]);
  std::swap(actions[i], actions[i + 1]);
  return true;
}

bool ActionMoved(Plan* plan, Dice* dice, std::string* what) {
  const ProgramPlace place = PickProgram(plan, dice);
  std::vector<Action>& actions = place.program->compute;
  const size_t from = dice->Below(actions.size());
  const size_t to = dice->Below(actions.size());
  if (from + 1 >= actions.size() || to + 1 >= actions.size() || from == to) return false;
  *what = absl::StrCat(NameOf(place, actions[from]), " to place ", to);
  const Action moved = actions[from];
  actions.erase(actions.begin() + static_cast<int64_t>(from));
  actions.insert(actions.begin() + static_cast<int64_t>(to), moved);
  return true;
}

bool ActionDropped(Plan* plan, Dice* dice, std::string* what) {
  const ProgramPlace place = PickProgram(plan, dice);
  std::vector<Action>& actions = place.program->compute;
  const size_t i = dice->Below(actions.size());
  *what = NameOf(place, actions[i]);
  actions.erase(actions.begin() + static_cast<int64_t>(i));
  return true;
}

// The reductions of a layer do not start, start twice, or before the layer's last backward.
bool ReductionMisplaced(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> reductions;
  for (const CallPlace& place : AllCalls(plan)) {
    for (const Chunk& chunk : place.rank_class->chunks) {
      const bool is_one = place.list == &chunk.last_backward && place.index > 0 &&
                          place.segment->instrs[0].phase == Phase::kUpdate;
      if (is_one) reductions.push_back(place);
    }
  }
  const CallPlace* picked = dice->Pick(&reductions);
  if (picked == nullptr) return false;
  std::vector<Call>& calls = *picked->list;
  const auto at = calls.begin() + static_cast<int64_t>(picked->index);
  const size_t choice = dice->Below(3);
  *what = picked->Name() + (choice == 0 ? " dropped" : choice == 1 ? " early" : " twice");
  const Call again = *at;
  if (choice == 0) {
    calls.erase(at);
  } else if (choice == 1) {
    std::rotate(calls.begin(), at, at + 1);
  } else {
    calls.insert(at, again);
  }
  return true;
}

bool WaitDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<ProgramPlace, Action*>> waiting;
  for (const ProgramPlace& place : AllPrograms(plan)) {
    for (Action& action : place.program->compute) {
      if (!action.waits.empty()) waiting.emplace_back(place, &action);
    }
  }
  const auto* picked = dice->Pick(&waiting);
  if (picked == nullptr) return false;
  std::vector<TransferRef>& waits = picked->second->waits;
  const size_t i = dice->Below(waits.size());
  *what = absl::StrCat(NameOf(picked->first, *picked->second), ", ", WordOf(waits[i].kind),
                       waits[i].micro_batch);
  waits.erase(waits.begin() + static_cast<int64_t>(i));
  return true;
}

// A wait for a send, whose memory is used again: those for receives are seen on reading.
bool CreditWaitDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<ProgramPlace, std::pair<Action*, size_t>>> waiting;
  for (const ProgramPlace& place : AllPrograms(plan)) {
    for (Action& action : place.program->compute) {
      for (size_t i = 0; i < action.waits.size(); ++i) {
        const TransferKind kind = action.waits[i].kind;
        if (kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward) {
          waiting.push_back({place, {&action, i}});
        }
      }
    }
  }
  const auto* picked = dice->Pick(&waiting);
  if (picked == nullptr) return false;
  Action& action = *picked->second.first;
  *what = NameOf(picked->first, action);
  action.waits.erase(action.waits.begin() + static_cast<int64_t>(picked->second.second));
  return true;
}

// A call waits for none of the collectives before it, or for one less.
bool CallWaitDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> waiting;
  for (const CallPlace& place : AllCalls(plan)) {
    if (place.call().running != kAnyRunning) waiting.push_back(place);
  }
  const CallPlace* picked = dice->Pick(&waiting);
  if (picked == nullptr) return false;
  Call& call = picked->call();
  call.running = dice->Flip() ? kAnyRunning : call.running + 1;
  *what = absl::StrCat(picked->Name(), " waits until ", call.running, " run");
  return true;
}

// --- Calls

bool CallSkipped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  *what = place.Name();
  place.list->erase(place.list->begin() + static_cast<int64_t>(place.index));
  return true;
}

bool CallDoubled(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  *what = place.Name();
  const Call again = place.call();
  place.list->insert(place.list->begin() + static_cast<int64_t>(place.index), again);
  return true;
}

bool CallsSwapped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  if (place.index + 1 >= place.list->size()) return false;
  *what = place.Name();
  std::swap((*place.list)[place.index], (*place.list)[place.index + 1]);
  return true;
}

// A call works for the layer after or before: keys and names are another layer's.
bool CallLayerChanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  *what = place.Name();
  place.call().layer += dice->Flip() ? 1 : -1;
  return true;
}

// Another segment with the same formals: evaluation's instead of training's, one layer's for
// another kind's.
bool CallOfAnotherSegment(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  std::vector<int> others;
  for (size_t s = 0; s < plan->segments.size(); ++s) {
    const bool same = plan->segments[s].formals.size() == place.segment->formals.size();
    if (same && static_cast<int>(s) != place.call().segment) others.push_back(static_cast<int>(s));
  }
  const int* other = dice->Pick(&others);
  if (other == nullptr) return false;
  *what = absl::StrCat(place.Name(), " becomes ", plan->segments[static_cast<size_t>(*other)].name);
  place.call().segment = *other;
  return true;
}

// A coordinate off by one: a formal is bound to what the same call of another layer is bound to.
bool BoundToAnotherLayer(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  for (int tries = 0; tries < 20; ++tries) {
    const CallPlace place = *dice->Pick(&calls);
    std::vector<size_t> choices;
    for (size_t i = 0; i < place.list->size(); ++i) {
      if (i != place.index && (*place.list)[i].segment == place.call().segment) {
        choices.push_back(i);
      }
    }
    const size_t* other = dice->Pick(&choices);
    if (other == nullptr) continue;
    const size_t formal = dice->Below(place.segment->formals.size());
    Binding& binding = place.call().bindings[formal];
    const Binding& theirs = (*place.list)[*other].bindings[formal];
    if (binding.base == theirs.base && binding.offset == theirs.offset) continue;
    binding = theirs;
    *what = absl::StrCat(place.Name(), ", ", ToString(place.segment->formals[formal]));
    return true;
  }
  return false;
}

bool BindingShifted(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  const size_t formal = dice->Below(place.segment->formals.size());
  Binding& binding = place.call().bindings[formal];
  binding.offset += dice->Flip() ? 64 : -64;
  *what = absl::StrCat(place.Name(), ", ", ToString(place.segment->formals[formal]));
  return true;
}

bool BindingsSwapped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<CallPlace> calls = AllCalls(plan);
  const CallPlace place = *dice->Pick(&calls);
  const size_t a = dice->Below(place.segment->formals.size());
  const size_t b = dice->Below(place.segment->formals.size());
  if (a == b) return false;
  std::swap(place.call().bindings[a], place.call().bindings[b]);
  *what = absl::StrCat(place.Name(), ", ", ToString(place.segment->formals[a]), " and ",
                       ToString(place.segment->formals[b]));
  return true;
}

}  // namespace

std::vector<MutationKind> ListMutations() {
  return {
      {"actions exchanged", ActionsSwapped},
      {"action moved", ActionMoved},
      {"action dropped", ActionDropped},
      {"reduction dropped, early or twice", ReductionMisplaced},
      {"action's wait dropped", WaitDropped},
      {"wait for a send dropped", CreditWaitDropped},
      {"wait of a call dropped", CallWaitDropped},
      {"call skipped", CallSkipped},
      {"call doubled", CallDoubled},
      {"calls exchanged", CallsSwapped},
      {"call for another layer", CallLayerChanged},
      {"call of another segment", CallOfAnotherSegment},
      {"formal bound to another layer", BoundToAnotherLayer},
      {"binding off", BindingShifted},
      {"bindings exchanged", BindingsSwapped},
  };
}

}  // namespace mgc
