#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

constexpr int64_t kStep = 64;

PlanClass* PickClass(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = dice->Pick(&plan->classes);
  *what = absl::StrCat("class ", c->coordinate);
  return c;
}

using Address = int64_t Action::*;
constexpr Address kAddresses[] = {&Action::frame, &Action::input, &Action::output,
                                  &Action::grad_input, &Action::grad_output};

// One address of one action becomes that of another action.
bool AddressOff(Plan* plan, Dice* dice, std::string* what) {
  std::vector<ProgramPlace> programs = AllPrograms(plan);
  const ProgramPlace place = *dice->Pick(&programs);
  std::vector<Action>& actions = place.program->compute;
  for (int tries = 0; tries < 50; ++tries) {
    Action& action = *dice->Pick(&actions);
    const Address address = kAddresses[dice->Below(5)];
    const int64_t other = dice->Pick(&actions)->*address;
    if (action.*address == -1 || other == -1 || other == action.*address) continue;
    action.*address = other;
    *what = absl::StrCat(place.Name(), ", ", LetterOf(action.ref.kind), action.ref.micro_batch);
    return true;
  }
  return false;
}

bool AddressShifted(Plan* plan, Dice* dice, std::string* what) {
  std::vector<ProgramPlace> programs = AllPrograms(plan);
  const ProgramPlace place = *dice->Pick(&programs);
  for (int tries = 0; tries < 50; ++tries) {
    Action& action = *dice->Pick(&place.program->compute);
    const Address address = kAddresses[dice->Below(5)];
    if (action.*address < kStep) continue;
    action.*address += dice->Flip() ? kStep : -kStep;
    *what = absl::StrCat(place.Name(), ", ", LetterOf(action.ref.kind), action.ref.micro_batch);
    return true;
  }
  return false;
}

// Forward and backward of a micro-batch move to the frame of another: a ring that is too small.
bool FrameReusedEarly(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  for (int tries = 0; tries < 50; ++tries) {
    Action& a = *dice->Pick(&c->train.compute);
    const Action& b = *dice->Pick(&c->train.compute);
    if (a.frame == -1 || b.frame == -1 || a.frame == b.frame) continue;
    const ActionRef ref = a.ref;
    const int64_t frame = b.frame;
    for (Action& action : c->train.compute) {
      if (action.ref.chunk == ref.chunk && action.ref.micro_batch == ref.micro_batch &&
          action.frame != -1) {
        action.frame = frame;
      }
    }
    absl::StrAppend(what, ", micro-batch ", ref.micro_batch, " of chunk ", ref.chunk);
    return true;
  }
  return false;
}

// All actions of a chunk move by a constant.
bool RingShifted(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  const int chunk = static_cast<int>(dice->Below(c->chunks.size()));
  const int64_t by = (dice->Flip() ? 1 : -1) * kStep;
  for (Action& action : c->train.compute) {
    if (action.ref.chunk == chunk && action.frame != -1) action.frame += by;
  }
  return true;
}

bool FrameBytes(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  Chunk* chunk = dice->Pick(&c->chunks);
  chunk->frame_bytes += (dice->Flip() ? 1 : -1) * kStep;
  absl::StrAppend(what, ", chunk of stage ", chunk->stage);
  return true;
}

bool Peak(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  c->memory.peak += (dice->Flip() ? 1 : -1) * kStep;
  return true;
}

bool Use(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  int64_t MemoryUse::*const uses[] = {&MemoryUse::params,     &MemoryUse::grads,
                                      &MemoryUse::states,     &MemoryUse::frames,
                                      &MemoryUse::boundaries, &MemoryUse::transient};
  c->memory.*uses[dice->Below(6)] += kStep;
  return true;
}

bool Transient(Plan* plan, Dice* dice, std::string* what) {
  Segment* segment = dice->Pick(&plan->segments);
  *what = segment->name;
  segment->transient_bytes += dice->Flip() || segment->transient_bytes < kStep ? kStep : -kStep;
  return true;
}

bool GlobalBytes(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  (dice->Flip() ? c->global_bytes : c->eval_global_bytes) += dice->Flip() ? kStep : -kStep;
  return true;
}

// What a training step or an evaluation zeroes.
std::vector<Range>* PickZeroed(PlanClass* c, Dice* dice) {
  return dice->Flip() ? &c->zeroed : &c->eval_zeroed;
}

bool ZeroedShrunk(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  Range* range = dice->Pick(PickZeroed(c, dice));
  if (range == nullptr || range->end - range->begin < 2 * kStep) return false;
  (dice->Flip() ? range->begin : range->end) += (range->end - range->begin) / 2 / 8 * 8;
  if (range->end > c->memory.peak) range->end = range->begin + kStep;
  return true;
}

bool ZeroedShortened(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  Range* range = dice->Pick(PickZeroed(c, dice));
  if (range == nullptr) return false;
  range->end = range->begin + (range->end - range->begin) / 2 / 8 * 8;
  return true;
}

// Parameters or states are cleared as well.
bool ZeroedTooMuch(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  const HeldBlock* held = dice->Pick(&c->blocks);
  if (held == nullptr) return false;
  const int64_t base = dice->Flip() ? held->param_base : held->state_base;
  PickZeroed(c, dice)->push_back({base, base + kStep});
  return base + kStep <= c->memory.peak;
}

bool ZeroedDropped(Plan* plan, Dice* dice, std::string* what) {
  PlanClass* c = PickClass(plan, dice, what);
  std::vector<Range>* zeroed = PickZeroed(c, dice);
  if (zeroed->empty()) return false;
  zeroed->erase(zeroed->begin() + static_cast<int64_t>(dice->Below(zeroed->size())));
  return true;
}

}  // namespace

std::vector<MutationKind> MemoryMutations() {
  return {
      {"address of another action", AddressOff},    {"address off", AddressShifted},
      {"frame used again early", FrameReusedEarly}, {"ring of frames off", RingShifted},
      {"size of frames misstated", FrameBytes},     {"peak misstated", Peak},
      {"bytes of a purpose misstated", Use},        {"transient bytes misstated", Transient},
      {"bytes of globals misstated", GlobalBytes},  {"zeroed range moved", ZeroedShrunk},
      {"zeroed range shortened", ZeroedShortened},  {"zeroed range too large", ZeroedTooMuch},
      {"zeroed range dropped", ZeroedDropped},
  };
}

}  // namespace mgc
