// The communication queues of StepMachine.

#include <algorithm>
#include <cstring>
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

Rank& StepMachine::PeerOf(const Rank& rank, const StepTransfer& transfer) {
  return ranks_[plan_.classes[transfer.transfer->peer].ranks[rank.index]];
}

// Posts the item the rank's queue stands at, if it can run now. Mutex held.
void StepMachine::TryItem(Rank& rank) {
  const CommItem* head = rank.Head();
  if (head == nullptr || rank.in_flight) return;
  if (head->transfer >= 0) {
    const StepTransfer* mine = ReadyTransfer(rank);
    if (mine == nullptr) return;
    Rank& peer = PeerOf(rank, *mine);
    const StepTransfer* theirs = ReadyTransfer(peer);
    if (theirs == nullptr || theirs != &OtherEndOf(peer, *mine)) return;
    rank.in_flight = peer.in_flight = true;
  } else {
    const std::vector<int>& members = plan_.groups[head->group][rank.id];
    for (int member : members) {
      if (!StandsAt(ranks_[member], head->signature)) return;
    }
    for (int member : members) ranks_[member].in_flight = true;
  }
  ready_comm_.push_back(rank.id);
  workers_.Announce();
}

void StepMachine::RunItem(Rank& rank) {
  const CommItem& item = *rank.Head();
  if (item.transfer >= 0) {
    RunTransfer(rank, item);
  } else {
    RunCollective(rank, item);
  }
}

void StepMachine::RunTransfer(Rank& rank, const CommItem& item) {
  const StepTransfer& mine = rank.program->steps->transfers[item.transfer];
  Rank& peer = PeerOf(rank, mine);
  const StepTransfer& theirs = peer.program->steps->transfers[peer.Head()->transfer];
  const bool sends = IsSend(mine.transfer->ref.kind);
  const char* from = (sends ? rank : peer).arena + (sends ? mine : theirs).transfer->address;
  char* to = (sends ? peer : rank).arena + (sends ? theirs : mine).transfer->address;
  const int64_t begin = tracing_ ? NowNs() : 0;
  workers_.For(mine.transfer->bytes, int64_t{64} << 10, [&](int64_t first, int64_t last) {
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
  });
  for (Rank* end : {&rank, &peer}) {
    const Transfer& transfer = *(end == &rank ? mine : theirs).transfer;
    end->comm_high = std::max(end->comm_high, transfer.address + transfer.bytes);
    if (tracing_) {
      end->comm_trace.Add(
          {TraceKind::kTransfer, input_.eval, -1, -1, end->Head()->transfer, begin, NowNs()});
    }
  }
  std::lock_guard<std::mutex> lock(workers_.mutex());
  ++rank.transfers_done;
  ++peer.transfers_done;
  FinishItem(rank);
  FinishItem(peer);
  TryItem(rank);
  TryItem(peer);
  --running_;
}

void StepMachine::RunCollective(Rank& rank, const CommItem& item) {
  const std::vector<int>& members = plan_.groups[item.group][rank.id];
  const int64_t begin = tracing_ ? NowNs() : 0;
  const absl::Status status = RunParts(rank, item);
  for (int member : members) {
    if (!tracing_) break;
    const CommItem& at = *ranks_[member].Head();
    const TraceRecord record = {
        TraceKind::kCollective, input_.eval, at.action, at.call, at.exchange, begin, NowNs()};
    TraceBuffer& trace = ranks_[member].comm_trace;
    status.ok() ? trace.Add(record) : trace.AddLast(record);
  }
  if (!status.ok()) return FailCollective(rank, item, status);
  std::lock_guard<std::mutex> lock(workers_.mutex());
  for (int member : members) {
    ++ranks_[member].collectives_done;
    FinishItem(ranks_[member]);
  }
  for (int member : members) TryItem(ranks_[member]);
  --running_;
}

// Runs the exchanges of a collective, one for each of its operands, for all members.
absl::Status StepMachine::RunParts(Rank& rank, const CommItem& item) {
  const std::vector<int>& members = plan_.groups[item.group][rank.id];
  CommTiles& tiles = comm_tiles_[rank.id];
  const LoadedCall& call = (*rank.program->calls[item.action])[item.call];
  const LoadedExchange& exchange = call.segment->exchanges[item.exchange];
  for (size_t m = 0; m < members.size(); ++m) {
    Rank& member = ranks_[members[m]];
    const CommItem& at = *member.Head();
    const Action& action = *member.program->steps->actions[at.action].action;
    const LoadedCall& own = (*member.program->calls[at.action])[at.call];
    const LoadedInstr& instr = own.segment->instrs[own.segment->exchanges[at.exchange].instr];
    const auto resolve = [&](const LoadedSlot& slot) {
      const int64_t address = AddressOf(own.call->bindings[slot.formal], action) + slot.offset;
      member.comm_high = std::max(member.comm_high, address + slot.bytes);
      return member.arena + address;
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
  return RunExchanges({tiles.exchanges.data(), exchange.parts.size()}, workers_);
}

// The group stays where it is: nobody's queue goes on.
void StepMachine::FailCollective(Rank& rank, const CommItem& item, const absl::Status& why) {
  absl::Status failure = FailureOfCollective(plan_, rank.id, input_.eval, item, why);
  std::lock_guard<std::mutex> lock(workers_.mutex());
  status_.Update(std::move(failure));
  --running_;
}

// Moves a rank's queue on behind the item that has been run. Mutex held.
void StepMachine::FinishItem(Rank& rank) {
  rank.in_flight = false;
  ++rank.comm_next;
  if (rank.state == RankState::kBlocked && rank.Satisfied()) MakeReady(rank);
}

}  // namespace mgc
