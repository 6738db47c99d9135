// Damage to the middle of long steps: micro-batches that the proof of the meaning leaves out, so
// that what is wrong with them must be seen in the full lists.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

bool IsLeftOut(const Plan& plan, int64_t micro_batch) {
  return micro_batch > 1 && micro_batch + 1 < plan.num_micro_batches;
}

// Entries of one list for which `fits` holds, by position.
template <class T, class Fits>
std::vector<size_t> Where(const std::vector<T>& list, const Fits& fits) {
  std::vector<size_t> found;
  for (size_t i = 0; i < list.size(); ++i) {
    if (fits(list[i])) found.push_back(i);
  }
  return found;
}

using Damage = bool (*)(Program*, size_t, Dice*);

MutationKind OfTransfer(const char* name, Damage damage) {
  return {name,
          [damage](Plan* plan, Dice* dice, std::string* what) {
            std::vector<ProgramPlace> programs = AllPrograms(plan);
            const ProgramPlace place = *dice->Pick(&programs);
            std::vector<size_t> left_out =
                Where(place.program->transfers, [plan](const Transfer& transfer) {
                  return IsLeftOut(*plan, transfer.ref.micro_batch);
                });
            const size_t* at = dice->Pick(&left_out);
            if (at == nullptr) return false;
            *what = absl::StrCat(place.Name(), ", transfer ", *at);
            return damage(place.program, *at, dice);
          },
          8};
}

MutationKind OfAction(const char* name, Damage damage) {
  return {
      name,
      [damage](Plan* plan, Dice* dice, std::string* what) {
        std::vector<ProgramPlace> programs = AllPrograms(plan);
        const ProgramPlace place = *dice->Pick(&programs);
        std::vector<size_t> left_out = Where(place.program->compute, [plan](const Action& action) {
          return action.ref.kind != ActionKind::kUpdate && IsLeftOut(*plan, action.ref.micro_batch);
        });
        const size_t* at = dice->Pick(&left_out);
        if (at == nullptr) return false;
        *what = absl::StrCat(place.Name(), ", action ", *at);
        return damage(place.program, *at, dice);
      },
      8};
}

bool Earlier(Program* program, size_t at, Dice*) {
  if (at == 0) return false;
  std::swap(program->transfers[at - 1], program->transfers[at]);
  return true;
}

bool AnchoredLater(Program* program, size_t at, Dice* dice) {
  Transfer& transfer = program->transfers[at];
  const Action& other = program->compute[dice->Below(program->compute.size())];
  if (other.ref.kind == transfer.anchor.kind && other.ref.chunk == transfer.anchor.chunk &&
      other.ref.micro_batch == transfer.anchor.micro_batch) {
    return false;
  }
  transfer.anchor = other.ref;
  transfer.issued = 0;
  return true;
}

bool NeedsNothing(Program* program, size_t at, Dice*) {
  Transfer& transfer = program->transfers[at];
  if (transfer.after.empty() && transfer.after_transfers.empty()) return false;
  transfer.after.clear();
  transfer.after_transfers.clear();
  return true;
}

bool Elsewhere(Program* program, size_t at, Dice* dice) {
  Transfer& transfer = program->transfers[at];
  const Transfer& other = program->transfers[dice->Below(program->transfers.size())];
  if (other.address == transfer.address) return false;
  transfer.address = other.address;
  return true;
}

bool TransferGone(Program* program, size_t at, Dice*) {
  program->transfers.erase(program->transfers.begin() + static_cast<int64_t>(at));
  return true;
}

bool WaitsForNothing(Program* program, size_t at, Dice*) {
  Action& action = program->compute[at];
  if (action.waits.empty()) return false;
  action.waits.clear();
  return true;
}

bool ActionEarlier(Program* program, size_t at, Dice*) {
  if (at == 0) return false;
  std::swap(program->compute[at - 1], program->compute[at]);
  return true;
}

bool OtherFrame(Program* program, size_t at, Dice* dice) {
  Action& action = program->compute[at];
  const Action& other = program->compute[dice->Below(program->compute.size())];
  if (action.frame < 0 || other.frame < 0 || action.frame == other.frame) return false;
  action.frame = other.frame;
  return true;
}

}  // namespace

std::vector<MutationKind> LeftOutMutations() {
  return {
      OfTransfer("middle: transfer before the one it follows", Earlier),
      OfTransfer("middle: transfer anchored elsewhere", AnchoredLater),
      OfTransfer("middle: transfer that needs nothing", NeedsNothing),
      OfTransfer("middle: transfer elsewhere", Elsewhere),
      OfTransfer("middle: transfer gone", TransferGone),
      OfAction("middle: action that waits for nothing", WaitsForNothing),
      OfAction("middle: action before the one it follows", ActionEarlier),
      OfAction("middle: action on another frame", OtherFrame),
  };
}

}  // namespace mgc
