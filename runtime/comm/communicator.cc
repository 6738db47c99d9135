#include "runtime/comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/base/status.h"

namespace mgc {
namespace {

// Of the largest group that MappedFlow serves.
size_t MostMapped(const Routes& routes, const RegionBases& arenas) {
  size_t most = 0;
  for (const auto& [group, route] : routes.all()) {
    if (MappedFlow::Reaches(route, arenas)) most = std::max(most, route.stop_of.size());
  }
  return most;
}

}  // namespace

Communicator::Communicator(absl::Span<const LoadedPlan* const> plans, const ProcessMap& map,
                           int self, Link& link, FlowMeans means)
    : map_(map), self_(self), link_(link), means_(std::move(means)), routes_(plans, map, self) {
  FlowRoom room = {0, routes_.most_stops(), MostMapped(routes_, means_.arenas)};
  for (const LoadedPlan* plan : plans) room.parts = std::max(room.parts, plan->most_operands);
  for (int64_t rank = 0; rank < map.RanksOf(self).size(); ++rank) {
    items_.push_back(std::make_unique<Item>(room, means_));
  }
}

absl::Status Communicator::Open() {
  MGC_RETURN_IF_ERROR(link_.Open(routes_.channels(), self_));
  return means_.library == nullptr ? absl::OkStatus()
                                   : means_.library->Open(routes_.library_groups());
}

void Communicator::StartCollective(size_t place, const Route& route,
                                   absl::Span<const TiledExchange> exchanges) {
  Item& item = *items_[place];
  item.is_transfer = false;
  item.flow.Begin(exchanges, route, link_);
  active_.fetch_add(1, std::memory_order_acq_rel);
  item.Activate();
}

void Communicator::StartTransfer(size_t place, size_t channel, bool sends, char* memory,
                                 int64_t bytes) {
  Item& item = *items_[place];
  item.is_transfer = true;
  item.channel = channel;
  item.sends = sends;
  item.memory = memory;
  item.left = bytes;
  active_.fetch_add(1, std::memory_order_acq_rel);
  item.Activate();
}

absl::StatusOr<bool> Communicator::Progress(absl::FunctionRef<void(size_t place)> ended) {
  MGC_RETURN_IF_ERROR(link_.Poll());
  if (means_.library != nullptr) MGC_RETURN_IF_ERROR(means_.library->Poll());
  bool moved = false;
  for (size_t place = 0; place < items_.size() && busy(); ++place) {
    Item& item = *items_[place];
    State state = State::kActive;
    if (item.state.load(std::memory_order_relaxed) != state ||
        !item.state.compare_exchange_strong(state, State::kClaimed, std::memory_order_acq_rel)) {
      continue;
    }
    moved = (item.is_transfer ? AdvanceTransfer(item) : item.flow.Advance()) || moved;
    if (!IsDone(item)) {
      item.Activate();
      continue;
    }
    item.state.store(State::kFree, std::memory_order_release);
    active_.fetch_sub(1, std::memory_order_acq_rel);
    ended(place);
    moved = true;
  }
  return moved;
}

bool Communicator::IsDone(const Item& item) {
  return item.is_transfer ? item.left == 0 : item.flow.done();
}

bool Communicator::AdvanceTransfer(Item& item) {
  const int64_t before = item.left;
  while (item.left > 0) {
    const int64_t bytes = std::min(item.left, kMessageBytes);
    if (item.sends) {
      Sender& sender = link_.sender(item.channel);
      char* const room = sender.Room();
      if (room == nullptr) break;
      std::memcpy(room, item.memory, static_cast<size_t>(bytes));
      sender.Send(bytes);
    } else {
      Receiver& receiver = link_.receiver(item.channel);
      const absl::Span<const char> message = receiver.Message();
      if (message.empty()) break;
      std::memcpy(item.memory, message.data(), static_cast<size_t>(bytes));
      receiver.Release();
    }
    item.memory += bytes;
    item.left -= bytes;
  }
  return item.left != before;
}

}  // namespace mgc
