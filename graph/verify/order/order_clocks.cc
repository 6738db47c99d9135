#include "graph/verify/order/order_clocks.h"

#include <algorithm>

namespace mgc {

bool OrderClocks::Fits(const StepTables& tables, int steps) {
  size_t events = 0;
  for (const StepClass& walk : tables.classes) {
    events += walk.actions.size() + walk.transfers.size() / 2;
  }
  return events * static_cast<size_t>(steps) <=
         kMostCounts / std::max<size_t>(tables.classes.size(), 1);
}

OrderClocks::OrderClocks(const StepTables& tables, int steps)
    : tables_(tables), num_classes_(tables.classes.size()) {
  now_.assign(num_classes_, Clock(num_classes_, 0));
  started_.assign(num_classes_, 0);
  joints_.resize(num_classes_);
  transfer_numbers_.resize(num_classes_);
  for (size_t c = 0; c < num_classes_; ++c) {
    const StepClass& walk = tables.classes[c];
    ends_.emplace_back(walk.actions.size() * static_cast<size_t>(steps) * num_classes_, 0);
    for (const StepTransfer& transfer : walk.transfers) {
      const bool send = IsSend(transfer.transfer->ref.kind);
      transfer_numbers_[c].push_back(send ? transfers_per_step_++ : -1);
    }
  }
  for (size_t c = 0; c < num_classes_; ++c) {
    const StepClass& walk = tables.classes[c];
    for (size_t i = 0; i < walk.transfers.size(); ++i) {
      const StepTransfer& transfer = walk.transfers[i];
      if (IsSend(transfer.transfer->ref.kind) || transfer.peer_index < 0) continue;
      transfer_numbers_[c][i] = transfer_numbers_[static_cast<size_t>(transfer.peer_class)]
                                                 [static_cast<size_t>(transfer.peer_index)];
    }
  }
  const size_t transfers = static_cast<size_t>(transfers_per_step_ * steps);
  transfer_clocks_.assign(transfers * num_classes_, 0);
  first_successor_.assign(transfers, -1);
  transfer_done_.assign(transfers, false);
  visited_.assign(transfers, 0);
}

// Over all steps, of a place in a class' list over all steps.
int64_t OrderClocks::NumberOf(int c, int64_t index) const {
  const std::vector<int64_t>& numbers = transfer_numbers_[static_cast<size_t>(c)];
  const int64_t size = static_cast<int64_t>(numbers.size());
  return index / size * transfers_per_step_ + numbers[static_cast<size_t>(index % size)];
}

void OrderClocks::AddSuccessor(int64_t transfer, int class_index, int64_t number) {
  int32_t& first = first_successor_[static_cast<size_t>(transfer)];
  successors_.push_back({class_index, number, first});
  first = static_cast<int32_t>(successors_.size()) - 1;
}

void OrderClocks::Join(const int32_t* from, int32_t* to) const {
  for (size_t c = 0; c < num_classes_; ++c) to[c] = std::max(to[c], from[c]);
}

void OrderClocks::EndPiece(int c) { ++now_[static_cast<size_t>(c)][static_cast<size_t>(c)]; }

ClockMoment OrderClocks::BeginAction(int c, int step, int index) {
  Clock& now = now_[static_cast<size_t>(c)];
  const StepClass& walk = tables_.classes[static_cast<size_t>(c)];
  const Action& action = *walk.actions[static_cast<size_t>(index)].action;
  const int32_t piece = now[static_cast<size_t>(c)];
  const int64_t first = step * static_cast<int64_t>(walk.transfers.size());
  for (const TransferRef& ref : action.waits) {
    const int64_t number = NumberOf(c, first + walk.IndexOf(ref));
    Join(TransferClock(number), now.data());
    AddSuccessor(number, c, piece);
  }
  return {now.data(), c, piece, -1};
}

void OrderClocks::EndAction(int c, int step, int index) {
  EndPiece(c);
  const Clock& now = now_[static_cast<size_t>(c)];
  const size_t size = tables_.classes[static_cast<size_t>(c)].actions.size();
  std::copy(now.begin(), now.end(), EndClock(c, step * static_cast<int64_t>(size) + index));
}

ClockMoment OrderClocks::PassTransfer(int from, int64_t from_index, int to, int64_t to_index) {
  const int64_t number = NumberOf(from, from_index);
  int32_t* clock = TransferClock(number);
  for (const auto& [c, index] : {std::make_pair(from, from_index), std::make_pair(to, to_index)}) {
    const StepClass& walk = tables_.classes[static_cast<size_t>(c)];
    const int64_t num_transfers = static_cast<int64_t>(walk.transfers.size());
    const int64_t step = index / num_transfers;
    const int64_t actions = step * static_cast<int64_t>(walk.actions.size());
    const mgc::Transfer& transfer =
        *walk.transfers[static_cast<size_t>(index % num_transfers)].transfer;
    const TransferRef& ref = transfer.ref;
    if (IsSend(ref.kind)) {
      const ActionRef sender{IsForward(ref.kind) ? ActionKind::kForward : ActionKind::kBackward,
                             ref.chunk, ref.micro_batch};
      Join(EndClock(c, actions + walk.IndexOf(sender)), clock);
    }
    for (const ActionRef& before : transfer.after) {
      Join(EndClock(c, actions + walk.IndexOf(before)), clock);
    }
    for (const TransferRef& before : transfer.after_transfers) {
      const int64_t earlier = NumberOf(c, step * num_transfers + walk.IndexOf(before));
      Join(TransferClock(earlier), clock);
      AddSuccessor(earlier, -1, number);
    }
  }
  transfer_done_[static_cast<size_t>(number)] = true;
  return {clock, -1, 0, number};
}

const StepStart& OrderClocks::StartOf(const InstrSite& site) const {
  const StepSegment& segment = tables_.segments[static_cast<size_t>(site.call->segment)];
  return segment.starts[static_cast<size_t>(site.instr->collective)];
}

void OrderClocks::Start(const InstrSite& site) {
  const size_t c = static_cast<size_t>(site.class_index);
  const int64_t start = StartOf(site).background ? started_[c]++ : -1;
  if (!IsJoint(site)) return;
  EndPiece(site.class_index);
  joints_[c].push_back({site.action, site.call, site.instr->collective, start, false, now_[c]});
}

void OrderClocks::Await(int c, int running) {
  std::deque<Joint>& joints = joints_[static_cast<size_t>(c)];
  const auto is_over = [&](const Joint& joint) {
    return joint.done && joint.start >= 0 &&
           joint.start < started_[static_cast<size_t>(c)] - running;
  };
  if (std::none_of(joints.begin(), joints.end(), is_over)) return;
  EndPiece(c);
  for (const Joint& joint : joints) {
    if (is_over(joint)) Join(joint.clock.data(), now_[static_cast<size_t>(c)].data());
  }
  joints.erase(std::remove_if(joints.begin(), joints.end(), is_over), joints.end());
}

// The first of each member that has not been done: queues keep their order.
void OrderClocks::Collect(absl::Span<const InstrSite> sites) {
  if (!IsJoint(sites[0])) return;
  std::vector<Joint*> joined;
  Clock clock(num_classes_, 0);
  for (const InstrSite& site : sites) {
    std::deque<Joint>& joints = joints_[static_cast<size_t>(site.class_index)];
    const auto it =
        std::find_if(joints.begin(), joints.end(), [](const Joint& joint) { return !joint.done; });
    if (it == joints.end()) continue;
    joined.push_back(&*it);
    Join(it->clock.data(), clock.data());
  }
  for (Joint* joint : joined) {
    joint->clock = clock;
    joint->done = true;
  }
}

void OrderClocks::Wait(const InstrSite& site) {
  if (!IsJoint(site)) return;
  const size_t c = static_cast<size_t>(site.class_index);
  EndPiece(site.class_index);
  std::deque<Joint>& joints = joints_[c];
  const auto it = std::find_if(joints.begin(), joints.end(), [&](const Joint& joint) {
    return joint.done && joint.action == site.action && joint.call == site.call &&
           joint.number == site.instr->collective;
  });
  if (it == joints.end()) return;
  Join(it->clock.data(), now_[c].data());
  joints.erase(it);
}

bool OrderClocks::IsOver(int c, const ClassEvent& event, const ClockMoment& moment) {
  if (event.transfer) return TransferIsOver(NumberOf(c, event.index), moment);
  const size_t own = static_cast<size_t>(c);
  const int32_t pieces = ends_[own][static_cast<size_t>(event.index) * num_classes_ + own];
  return pieces > 0 && moment.clock[own] >= pieces;
}

bool OrderClocks::TransferIsOver(int64_t number, const ClockMoment& moment) {
  std::vector<int64_t> open = {number};
  ++visit_;
  while (!open.empty() && budget_ > 0) {
    const int64_t transfer = open.back();
    open.pop_back();
    if (!transfer_done_[static_cast<size_t>(transfer)]) continue;
    for (int32_t at = first_successor_[static_cast<size_t>(transfer)]; at >= 0;
         at = successors_[static_cast<size_t>(at)].next) {
      const Successor& next = successors_[static_cast<size_t>(at)];
      --budget_;
      if (next.class_index >= 0) {
        const size_t c = static_cast<size_t>(next.class_index);
        if (moment.clock[c] > next.number) return true;
        if (moment.class_index == next.class_index && moment.piece == next.number) return true;
        continue;
      }
      if (next.number == moment.transfer) return true;
      int32_t& visited = visited_[static_cast<size_t>(next.number)];
      if (visited == visit_) continue;
      visited = visit_;
      open.push_back(next.number);
    }
  }
  return false;
}

}  // namespace mgc
