// The communication queues of StepMachine.

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "runtime/run/step_machine.h"
#include "runtime/run/where.h"

namespace mgc {
namespace {

// The other end of a transfer, in the list of the rank at that end.
const StepTransfer& OtherEndOf(const Rank& peer, const StepTransfer& transfer) {
  return peer.program->steps->transfers[static_cast<size_t>(transfer.peer_index)];
}

// Whether the rank's queue stands at this collective and its compute queue has started it.
bool StandsAt(const Rank& rank, int signature) {
  const CommItem* head = rank.Head();
  return rank.begun && !rank.in_flight && head != nullptr && head->transfer < 0 &&
         head->signature == signature && rank.started > head->ordinal;
}

// The transfer the rank's queue stands at if it may start, else null.
const StepTransfer* ReadyTransfer(const Rank& rank) {
  const CommItem* head = rank.Head();
  if (!rank.begun || rank.in_flight || head == nullptr || head->transfer < 0) return nullptr;
  const StepTransfer& transfer = rank.program->steps->transfers[head->transfer];
  return rank.actions_done >= transfer.actions_needed ? &transfer : nullptr;
}

}  // namespace

int StepMachine::PeerOf(const Rank& rank, const StepTransfer& transfer) const {
  return plan_->classes[transfer.transfer->peer].ranks[rank.index];
}

// Posts the item the rank's queue stands at, if it can run now. Mutex held.
void StepMachine::TryItem(Rank& rank) {
  const CommItem* head = rank.Head();
  if (head == nullptr || rank.in_flight) return;
  if (head->transfer >= 0) {
    const StepTransfer* mine = ReadyTransfer(rank);
    if (mine == nullptr) return;
    if (const int other = PeerOf(rank, *mine); IsHere(other)) {
      Rank& peer = Local(other);
      const StepTransfer* theirs = ReadyTransfer(peer);
      if (theirs == nullptr || theirs != &OtherEndOf(peer, *mine)) return;
      peer.in_flight = true;
    }
    rank.in_flight = true;
  } else {
    const std::vector<int>& members = plan_->GroupOf(head->group, rank.id);
    for (int member : members) {
      if (IsHere(member) && !StandsAt(Local(member), head->signature)) return;
    }
    for (int member : members) {
      if (IsHere(member)) Local(member).in_flight = true;
    }
  }
  PublishItems(rank);
  ready_comm_.push_back(PlaceOf(rank));
  if (IsRemote(rank, *head)) posted_remote_.fetch_add(1, std::memory_order_relaxed);
  workers_.Announce();
}

// Of all members here that stand at the item. Mutex held.
void StepMachine::PublishItems(Rank& rank) {
  const CommItem& item = *rank.Head();
  if (item.transfer >= 0) return rank.PublishItem();
  for (int member : plan_->GroupOf(item.group, rank.id)) {
    if (IsHere(member)) Local(member).PublishItem();
  }
}

// The rank whose posted item this worker is to run. Mutex held.
int StepMachine::TakePosted(size_t at) {
  const int place = ready_comm_[at];
  ready_comm_.erase(ready_comm_.begin() + static_cast<std::ptrdiff_t>(at));
  const Rank& rank = ranks_[static_cast<size_t>(place)];
  if (IsRemote(rank, *rank.Head())) posted_remote_.fetch_sub(1, std::memory_order_relaxed);
  ++running_;
  return place;
}

// What another process has a part in and no idle worker has taken begins between two instructions,
// so that it moves beside what is computed also where all workers compute. Whether there was any.
bool StepMachine::BeginRemote() {
  bool any = false;
  while (posted_remote_.load(std::memory_order_relaxed) > 0) {
    int place = -1;
    {
      std::lock_guard<std::mutex> lock(workers_.mutex());
      if (!status_.ok()) return any;
      const auto posted = std::find_if(ready_comm_.begin(), ready_comm_.end(), [this](int at) {
        const Rank& rank = ranks_[static_cast<size_t>(at)];
        return IsRemote(rank, *rank.Head());
      });
      if (posted == ready_comm_.end()) return any;
      place = TakePosted(static_cast<size_t>(posted - ready_comm_.begin()));
    }
    RunItem(ranks_[static_cast<size_t>(place)]);
    any = true;
  }
  return any;
}

void StepMachine::RunItem(Rank& rank) {
  const CommItem& item = *rank.Head();
  rank.progress->item_since_ns.set(NowNs());
  if (probe_) {
    const absl::Status status = probe_(rank, &item);
    if (!status.ok()) return FailItem(rank, item, status);
  }
  rank.comm_begin_ns = tracing_ ? NowNs() : 0;
  if (IsRemote(rank, item)) return StartRemote(rank, item);
  item.transfer >= 0 ? RunTransfer(rank, item) : RunCollective(rank, item);
}

// With another process, by a device that reaches it.
void StepMachine::RunFarTransfer(Rank& rank, const CommItem& item) {
  const StepTransfer& mine = rank.program->steps->transfers[item.transfer];
  const int place = PlaceOf(rank);
  FarTransfer far;
  far.peer = PeerOf(rank, mine);
  far.sends = IsSend(mine.transfer->ref.kind);
  far.memory = static_cast<char*>(device_.At(place, mine.transfer->address));
  far.bytes = mine.transfer->bytes;
  AwaitOwn(rank);
  const absl::Status status = device_.RunTransfer(CommQueue(place), far);
  if (!status.ok()) return FailItem(rank, item, status);
  device_.Record(MarkOfItem(rank));
  EndTransfer(rank);
  std::lock_guard<std::mutex> lock(workers_.mutex());
  FinishItem(rank);
  TryItem(rank);
  --running_;
}

void StepMachine::RunTransfer(Rank& rank, const CommItem& item) {
  const StepTransfer& mine = rank.program->steps->transfers[item.transfer];
  if (!IsHere(PeerOf(rank, mine))) return RunFarTransfer(rank, item);
  Rank& peer = Local(PeerOf(rank, mine));
  const bool sends = IsSend(mine.transfer->ref.kind);
  const Rank& sender = sends ? rank : peer;
  const Rank& receiver = sends ? peer : rank;
  const auto memory = [this](const Rank& end) {
    const Transfer& transfer = *end.program->steps->transfers[end.Head()->transfer].transfer;
    return device_.At(PlaceOf(end), transfer.address);
  };
  peer.comm_begin_ns = rank.comm_begin_ns;
  AwaitOwn(sender);
  Join(sender, receiver);
  device_.Copy(CommQueue(PlaceOf(sender)), memory(sender), memory(receiver), mine.transfer->bytes);
  device_.Record(MarkOfItem(sender));
  Part(sender, receiver);
  EndTransfer(rank);
  EndTransfer(peer);
  std::lock_guard<std::mutex> lock(workers_.mutex());
  FinishItem(rank);
  FinishItem(peer);
  TryItem(rank);
  TryItem(peer);
  --running_;
}

// Records that the transfer a rank stands at has ended.
void StepMachine::EndTransfer(Rank& rank) {
  const int number = rank.Head()->transfer;
  const Transfer& transfer = *rank.program->steps->transfers[number].transfer;
  rank.comm_high = std::max(rank.comm_high, transfer.address + transfer.bytes);
  if (!recording_) return;
  rank.comm_trace.Add(
      {TraceKind::kTransfer, input_.eval, -1, -1, number, rank.comm_begin_ns, NowNs()});
}

// Of a collective's members, which ascend as the ranks here do, those that are here.
absl::Span<const int> StepMachine::MembersHere(const Rank& rank, const CommItem& item) const {
  const std::vector<int>& members = plan_->GroupOf(item.group, rank.id);
  const auto first = std::lower_bound(members.begin(), members.end(), plan_->local.begin);
  const auto last = std::lower_bound(first, members.end(), plan_->local.end);
  return absl::MakeConstSpan(members).subspan(static_cast<size_t>(first - members.begin()),
                                              static_cast<size_t>(last - first));
}

void StepMachine::RunCollective(Rank& rank, const CommItem& item) {
  const absl::Span<const int> members = MembersHere(rank, item);
  const Rank& lead = Local(members[0]);
  JoinAll(lead, item);
  const ExchangeGroup group = {item.group, plan_->GroupOf(item.group, rank.id)};
  const absl::Status status =
      device_.RunExchanges(CommQueue(PlaceOf(lead)), group, Tile(rank, item));
  device_.Record(MarkOfItem(lead));
  for (size_t m = 1; m < members.size(); ++m) Part(lead, Local(members[m]));
  EndCollective(rank, status);
  if (!status.ok()) return FailItem(rank, item, status);
  std::lock_guard<std::mutex> lock(workers_.mutex());
  for (int member : members) FinishItem(Local(member));
  for (int member : members) TryItem(Local(member));
  --running_;
}

// Records that the collective a rank stands at has ended, for all members here.
void StepMachine::EndCollective(Rank& rank, const absl::Status& status) {
  if (!(status.ok() ? recording_ : tracing_)) return;
  for (int member : plan_->GroupOf(rank.Head()->group, rank.id)) {
    if (!IsHere(member)) continue;
    const CommItem& at = *Local(member).Head();
    const TraceRecord record = {
        TraceKind::kCollective, input_.eval, at.action, at.call, at.exchange,
        rank.comm_begin_ns,     NowNs()};
    TraceBuffer& trace = Local(member).comm_trace;
    status.ok() ? trace.Add(record) : trace.AddLast(record);
  }
}

// Has the item a rank stands at handed to the communicator when the queues of all members here have
// come to it. These get nothing more until it has ended.
void StepMachine::StartRemote(Rank& rank, const CommItem& item) {
  rank.progress->item_since_ns.set(0);  // nobody runs it: it moves
  {
    std::lock_guard<std::mutex> lock(workers_.mutex());
    ++remote_;
  }
  JoinAll(rank, item);
  device_.Tell(CommQueue(PlaceOf(rank)), [this, &rank] { HandOver(rank); });
  // Only now: a step that fails meanwhile must not end before this worker is out of here.
  std::lock_guard<std::mutex> lock(workers_.mutex());
  --running_;
}

// Of a collective: for all members here. Any thread; where it is no worker's, the executor's ticker
// is the first to move what has begun.
void StepMachine::HandOver(Rank& rank) {
  const CommItem& item = *rank.Head();
  const size_t place = static_cast<size_t>(PlaceOf(rank));
  if (item.transfer < 0) {
    communicator_->StartCollective(place, *RouteOf(rank, item), Tile(rank, item));
    return;
  }
  const StepTransfer& transfer = rank.program->steps->transfers[item.transfer];
  const bool sends = IsSend(transfer.transfer->ref.kind);
  const int peer = PeerOf(rank, transfer);
  const size_t channel =
      communicator_->routes().TransferChannel(sends ? rank.id : peer, sends ? peer : rank.id);
  void* const memory = device_.At(PlaceOf(rank), transfer.transfer->address);
  communicator_->StartTransfer(place, channel, sends, static_cast<char*>(memory),
                               transfer.transfer->bytes);
}

// The item that a rank has handed over has ended.
void StepMachine::EndRemote(Rank& rank) {
  const CommItem& item = *rank.Head();
  const bool is_transfer = item.transfer >= 0;
  is_transfer ? EndTransfer(rank) : EndCollective(rank, absl::OkStatus());
  const absl::Span<const int> members =
      is_transfer ? absl::MakeConstSpan(&rank.id, 1)
                  : absl::MakeConstSpan(plan_->GroupOf(item.group, rank.id));
  for (int member : members) {
    if (IsHere(member)) device_.Record(MarkOfItem(Local(member)));
  }
  std::lock_guard<std::mutex> lock(workers_.mutex());
  --remote_;
  for (int member : members) {
    if (IsHere(member)) FinishItem(Local(member));
  }
  for (int member : members) {
    if (IsHere(member)) TryItem(Local(member));
  }
  workers_.Announce();
}

bool StepMachine::Help() {
  const absl::StatusOr<bool> moved =
      communicator_->Progress([this](size_t place) { EndRemote(ranks_[place]); });
  if (moved.ok() && *moved) ranks_[0].progress->moved_ns.set(NowNs());
  if (moved.ok()) return *moved;
  Fail(moved.status());
  device_.Abort();
  return false;
}

void StepMachine::Poll() {
  if (communicator_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(polling_);
  if (status().ok()) Help();
}

// The exchanges of the collective a rank stands at, one for each of its operands, with the tiles of
// all members here.
absl::Span<const TiledExchange> StepMachine::Tile(Rank& rank, const CommItem& item) {
  const std::vector<int>& members = plan_->GroupOf(item.group, rank.id);
  CommTiles& tiles = comm_tiles_[static_cast<size_t>(PlaceOf(rank))];
  const LoadedCall& call = (*rank.program->calls[item.action])[item.call];
  const LoadedExchange& exchange = call.segment->exchanges[item.exchange];
  for (size_t m = 0; m < members.size(); ++m) {
    if (!IsHere(members[m])) continue;
    Rank& member = Local(members[m]);
    const CommItem& at = *member.Head();
    const Action& action = *member.program->steps->actions[at.action].action;
    const LoadedCall& own = (*member.program->calls[at.action])[at.call];
    const LoadedInstr& instr = own.segment->instrs[own.segment->exchanges[at.exchange].instr];
    const auto resolve = [&](const LoadedSlot& slot) {
      const int64_t address = AddressOf(own.call->bindings[slot.formal], action) + slot.offset;
      member.comm_high = std::max(member.comm_high, address + slot.bytes);
      return static_cast<char*>(device_.At(PlaceOf(member), address));
    };
    for (size_t part = 0; part < exchange.parts.size(); ++part) {
      tiles.inputs[part * members.size() + m] = resolve(instr.inputs[part]);
      tiles.outputs[part * members.size() + m] = resolve(instr.outputs[part]);
    }
  }
  for (size_t part = 0; part < exchange.parts.size(); ++part) {
    const size_t first = part * members.size();
    tiles.exchanges[part] = {&exchange.parts[part],
                             {&tiles.inputs[first], members.size()},
                             {&tiles.outputs[first], members.size()}};
  }
  return {tiles.exchanges.data(), exchange.parts.size()};
}

// The group stays where it is: nobody's queue goes on.
void StepMachine::FailItem(Rank& rank, const CommItem& item, const absl::Status& why) {
  rank.progress->item_since_ns.set(0);
  absl::Status failure = FailureOfItem(*plan_, rank.id, input_.eval, item, why);
  {
    std::lock_guard<std::mutex> lock(workers_.mutex());
    status_.Update(std::move(failure));
  }
  device_.Abort();  // workers that issue to other processes come back
  std::lock_guard<std::mutex> lock(workers_.mutex());
  --running_;
}

// Lets a rank's queue await, on the device, what the item it stands at needs of the rank itself.
void StepMachine::AwaitOwn(const Rank& rank) {
  const CommItem& item = *rank.Head();
  const int place = PlaceOf(rank);
  if (item.transfer < 0) {
    device_.Await(CommQueue(place), {place, MarkKind::kStarts, item.ordinal + 1}, Wait::kStart);
    return;
  }
  const StepTransfer& transfer = rank.program->steps->transfers[item.transfer];
  if (transfer.actions_needed == 0) return;
  device_.Await(CommQueue(place), {place, MarkKind::kActions, transfer.actions_needed},
                IsSend(transfer.transfer->ref.kind) ? Wait::kSend : Wait::kReceive);
}

void StepMachine::Join(const Rank& lead, const Rank& rank) {
  AwaitOwn(rank);
  const Mark arrival = {PlaceOf(rank), MarkKind::kArrivals,
                        static_cast<int64_t>(rank.comm_next) + 1};
  device_.Record(arrival);
  device_.Await(CommQueue(PlaceOf(lead)), arrival,
                rank.Head()->transfer >= 0 ? Wait::kTransferMeets : Wait::kMembersMeet);
}

// Lets the queue of an item's lead, and those of the other members here, come to it.
void StepMachine::JoinAll(const Rank& lead, const CommItem& item) {
  AwaitOwn(lead);
  if (item.transfer >= 0) return;
  for (int member : plan_->GroupOf(item.group, lead.id)) {
    if (member != lead.id && IsHere(member)) Join(lead, Local(member));
  }
}

void StepMachine::Part(const Rank& lead, const Rank& rank) {
  const bool is_transfer = rank.Head()->transfer >= 0;
  device_.Await(CommQueue(PlaceOf(rank)), MarkOfItem(lead),
                is_transfer ? Wait::kTransferEnds : Wait::kMembersEnd);
  device_.Record(MarkOfItem(rank));
}

// What is reached when the item that a rank stands at is done.
Mark StepMachine::MarkOfItem(const Rank& rank) const {
  if (rank.Head()->transfer >= 0) {
    return {PlaceOf(rank), MarkKind::kTransfers, rank.transfers_done + 1};
  }
  return {PlaceOf(rank), MarkKind::kCollectives, rank.collectives_done + 1};
}

// Moves a rank's queue on behind the item that has been run. Mutex held.
void StepMachine::FinishItem(Rank& rank) {
  rank.in_flight = false;
  rank.progress->item_since_ns.set(0);
  ++(rank.Head()->transfer >= 0 ? rank.transfers_done : rank.collectives_done);
  ++rank.comm_next;
  rank.PublishItem();
  if (rank.state == RankState::kBlocked && rank.Satisfied()) MakeReady(rank);
}

}  // namespace mgc
