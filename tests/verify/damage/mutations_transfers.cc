#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

struct TransferPlace {
  ProgramPlace program;
  size_t index = 0;

  Transfer& transfer() const { return program.program->transfers[index]; }
  std::string Name() const {
    const TransferRef& ref = transfer().ref;
    return absl::StrCat(program.Name(), ", ", WordOf(ref.kind), ref.micro_batch, " of chunk ",
                        ref.chunk);
  }
};

bool PickTransfer(Plan* plan, Dice* dice, TransferPlace* place, std::string* what) {
  std::vector<TransferPlace> places;
  for (const ProgramPlace& program : AllPrograms(plan)) {
    for (size_t i = 0; i < program.program->transfers.size(); ++i) places.push_back({program, i});
  }
  if (places.empty()) return false;
  *place = *dice->Pick(&places);
  *what = place->Name();
  return true;
}

TransferKind OtherEnd(TransferKind kind) {
  switch (kind) {
    case TransferKind::kSendForward:
      return TransferKind::kRecvForward;
    case TransferKind::kRecvForward:
      return TransferKind::kSendForward;
    case TransferKind::kSendBackward:
      return TransferKind::kRecvBackward;
    case TransferKind::kRecvBackward:
      return TransferKind::kSendBackward;
  }
  return kind;
}

// The other end in the plan, or null.
Transfer* Counterpart(Plan* plan, const TransferPlace& place) {
  const Transfer& mine = place.transfer();
  PlanClass& peer = plan->classes[static_cast<size_t>(mine.peer)];
  Program& program = place.program.eval ? peer.eval : peer.train;
  const std::vector<Chunk>& chunks = place.program.eval ? peer.eval_chunks : peer.chunks;
  const int stage = (*place.program.chunks)[static_cast<size_t>(mine.ref.chunk)].stage;
  for (Transfer& transfer : program.transfers) {
    const int other = chunks[static_cast<size_t>(transfer.ref.chunk)].stage;
    if (transfer.ref.kind == OtherEnd(mine.ref.kind) && std::abs(stage - other) == 1 &&
        transfer.ref.micro_batch == mine.ref.micro_batch &&
        transfer.peer == place.program.rank_class->coordinate) {
      return &transfer;
    }
  }
  return nullptr;
}

bool SwappedWithNext(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  if (place.index + 1 >= transfers.size()) return false;
  std::swap(transfers[place.index], transfers[place.index + 1]);
  return true;
}

// Two transfers change places in the order, anchors and all.
bool Reordered(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  const size_t to = dice->Below(transfers.size());
  if (to == place.index) return false;
  const Transfer moved = transfers[place.index];
  transfers.erase(transfers.begin() + static_cast<int64_t>(place.index));
  transfers.insert(transfers.begin() + static_cast<int64_t>(to), moved);
  if (to + 1 < transfers.size()) {
    transfers[to].anchor = transfers[to + 1].anchor;
    transfers[to].issued = transfers[to + 1].issued;
  }
  absl::StrAppend(what, " to place ", to);
  return true;
}

bool AnchorMoved(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  const std::vector<Action>& actions = place.program.program->compute;
  const Action& to = actions[dice->Below(actions.size())];
  const ActionRef& from = place.transfer().anchor;
  if (to.ref.kind == from.kind && to.ref.micro_batch == from.micro_batch &&
      to.ref.chunk == from.chunk) {
    return false;
  }
  place.transfer().anchor = to.ref;
  absl::StrAppend(what, " to ", LetterOf(to.ref.kind), to.ref.micro_batch);
  return true;
}

bool IssuedOff(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  place.transfer().issued += dice->Flip() || place.transfer().issued == 0 ? 1 : -1;
  absl::StrAppend(what, " to ", place.transfer().issued);
  return true;
}

// What must be complete before a transfer may start.
bool AfterDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::vector<ActionRef>*> lists;
  for (const ProgramPlace& program : AllPrograms(plan)) {
    for (Transfer& transfer : program.program->transfers) {
      if (!transfer.after.empty()) lists.push_back(&transfer.after);
    }
  }
  auto* picked = dice->Pick(&lists);
  if (picked == nullptr) return false;
  *what = absl::StrCat("after ", LetterOf((*picked)->back().kind), (*picked)->back().micro_batch);
  (*picked)->pop_back();
  return true;
}

bool AfterTransfersDropped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::vector<TransferRef>*> lists;
  for (const ProgramPlace& program : AllPrograms(plan)) {
    for (Transfer& transfer : program.program->transfers) {
      if (!transfer.after_transfers.empty()) lists.push_back(&transfer.after_transfers);
    }
  }
  auto* picked = dice->Pick(&lists);
  if (picked == nullptr) return false;
  *what = absl::StrCat("after ", WordOf((*picked)->back().kind), (*picked)->back().micro_batch);
  (*picked)->pop_back();
  return true;
}

// Waits for an earlier micro-batch than the one whose memory it takes.
bool AfterOffByOne(Plan* plan, Dice* dice, std::string* what) {
  std::vector<ActionRef*> refs;
  for (const ProgramPlace& program : AllPrograms(plan)) {
    for (Transfer& transfer : program.program->transfers) {
      for (ActionRef& ref : transfer.after) {
        if (ref.micro_batch > 0) refs.push_back(&ref);
      }
    }
  }
  auto* picked = dice->Pick(&refs);
  if (picked == nullptr) return false;
  *what = absl::StrCat("after ", LetterOf((*picked)->kind), (*picked)->micro_batch);
  --(*picked)->micro_batch;
  return true;
}

// An address that another transfer of the program uses.
bool AddressOfAnother(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  const Transfer& other = *dice->Pick(&transfers);
  if (other.address == place.transfer().address) return false;
  place.transfer().address = other.address;
  return true;
}

// The same, and the actions that read or write there move along: a ring that is too small.
bool BufferReusedEarly(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  const int64_t from = place.transfer().address;
  const int64_t to = dice->Pick(&transfers)->address;
  if (to == from) return false;
  const TransferRef ref = place.transfer().ref;
  place.transfer().address = to;
  for (Action& action : place.program.program->compute) {
    if (action.ref.chunk != ref.chunk || action.ref.micro_batch != ref.micro_batch) continue;
    const bool forward =
        ref.kind == TransferKind::kSendForward || ref.kind == TransferKind::kRecvForward;
    const std::pair<int64_t*, bool> addresses[] = {{&action.input, forward},
                                                   {&action.output, forward},
                                                   {&action.grad_input, !forward},
                                                   {&action.grad_output, !forward}};
    for (const auto& [address, mine] : addresses) {
      if (mine && *address == from) *address = to;
    }
  }
  return true;
}

bool AddressesSwapped(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  Transfer& other = *dice->Pick(&transfers);
  if (other.address == place.transfer().address) return false;
  std::swap(other.address, place.transfer().address);
  return true;
}

bool Halved(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  Transfer* other = Counterpart(plan, place);
  if (other == nullptr) return false;
  place.transfer().bytes /= 2;
  other->bytes = place.transfer().bytes;
  return true;
}

bool PeerOff(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  place.transfer().peer += dice->Flip() ? 1 : -1;
  return true;
}

bool DirectionChanged(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  place.transfer().ref.kind = OtherEnd(place.transfer().ref.kind);
  return true;
}

bool Dropped(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  const TransferRef ref = place.transfer().ref;
  std::vector<Transfer>& transfers = place.program.program->transfers;
  transfers.erase(transfers.begin() + static_cast<int64_t>(place.index));
  for (Action& action : place.program.program->compute) {
    action.waits.erase(std::remove_if(action.waits.begin(), action.waits.end(),
                                      [&](const TransferRef& wait) {
                                        return wait.kind == ref.kind && wait.chunk == ref.chunk &&
                                               wait.micro_batch == ref.micro_batch;
                                      }),
                       action.waits.end());
  }
  return true;
}

// Two micro-batches exchange their transfers at one end.
bool MicroBatchesSwapped(Plan* plan, Dice* dice, std::string* what) {
  TransferPlace place;
  if (!PickTransfer(plan, dice, &place, what)) return false;
  const TransferRef ref = place.transfer().ref;
  Transfer* other = FindTransfer(place.program.program, ref.kind, ref.chunk, ref.micro_batch + 1);
  if (other == nullptr) return false;
  std::swap(other->ref, place.transfer().ref);
  return true;
}

}  // namespace

std::vector<MutationKind> TransferMutations() {
  return {
      {"transfer before the one it follows", SwappedWithNext},
      {"transfer moved in the order", Reordered},
      {"anchor moved on one end", AnchorMoved},
      {"collectives before a transfer off by one", IssuedOff},
      {"credit of an action dropped", AfterDropped},
      {"credit of a transfer dropped", AfterTransfersDropped},
      {"credit off by a micro-batch", AfterOffByOne},
      {"transfer at another's address", AddressOfAnother},
      {"boundary buffer used again early", BufferReusedEarly},
      {"transfers exchange addresses", AddressesSwapped},
      {"transfer cut in half", Halved},
      {"peer off by one", PeerOff},
      {"send called a receive", DirectionChanged},
      {"transfer dropped", Dropped},
      {"transfers exchange micro-batches", MicroBatchesSwapped},
  };
}

}  // namespace mgc
