#include "runtime/comm/communicator.h"

#include <algorithm>
#include <cstring>

#include "graph/base/status.h"

namespace mgc {
namespace {

// Below it the time of a message counts, not its bytes: a line of processes would add up waits.
constexpr int64_t kMostDirectBytes = int64_t{16} << 10;

// A reduce-scatter sends each term once where it is needed, which no line does better unless a
// process can add up several of its own before.
bool GoesDirectly(const Share& share) {
  if (share.kind() == CollectiveKind::kAllToAll || share.bytes() <= kMostDirectBytes) return true;
  if (share.kind() != CollectiveKind::kReduceScatter) return false;
  const std::vector<Stop>& stops = share.route().stops;
  return std::all_of(stops.begin(), stops.end(),
                     [](const Stop& stop) { return stop.last - stop.first == 1; });
}

}  // namespace

Communicator::Communicator(const LoadedPlan& plan, const ProcessMap& map, int self, Link& link)
    : map_(map), self_(self), link_(link), routes_(plan, map, self) {
  for (int64_t rank = 0; rank < map.RanksOf(self).size(); ++rank) {
    items_.push_back(std::make_unique<Item>(plan.most_operands, routes_.most_stops()));
  }
}

void Communicator::StartCollective(size_t place, const Route& route,
                                   absl::Span<const TiledExchange> exchanges) {
  Item& item = *items_[place];
  item.share.Begin(exchanges, route);
  item.way = GoesDirectly(item.share) ? Way::kDirect : Way::kLine;
  if (item.way == Way::kDirect) {
    item.direct.Begin(item.share, link_);
  } else {
    item.line.Begin(item.share, link_);
  }
  active_.fetch_add(1, std::memory_order_acq_rel);
  item.Activate();
}

void Communicator::StartTransfer(size_t place, size_t channel, bool sends, char* memory,
                                 int64_t bytes) {
  Item& item = *items_[place];
  item.way = Way::kTransfer;
  item.channel = channel;
  item.sends = sends;
  item.memory = memory;
  item.left = bytes;
  active_.fetch_add(1, std::memory_order_acq_rel);
  item.Activate();
}

absl::StatusOr<bool> Communicator::Progress(absl::FunctionRef<void(size_t place)> ended) {
  MGC_RETURN_IF_ERROR(link_.Poll());
  bool moved = false;
  for (size_t place = 0; place < items_.size() && busy(); ++place) {
    Item& item = *items_[place];
    State state = State::kActive;
    if (item.state.load(std::memory_order_relaxed) != state ||
        !item.state.compare_exchange_strong(state, State::kClaimed, std::memory_order_acq_rel)) {
      continue;
    }
    moved = Advance(item) || moved;
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

bool Communicator::Advance(Item& item) {
  switch (item.way) {
    case Way::kLine:
      return item.line.Advance();
    case Way::kDirect:
      return item.direct.Advance();
    case Way::kTransfer:
      break;
  }
  return AdvanceTransfer(item);
}

bool Communicator::IsDone(const Item& item) {
  switch (item.way) {
    case Way::kLine:
      return item.line.done();
    case Way::kDirect:
      return item.direct.done();
    case Way::kTransfer:
      break;
  }
  return item.left == 0;
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

int Communicator::WaitsFor(size_t place) const {
  const Item& item = *items_[place];
  if (item.state.load(std::memory_order_acquire) == State::kFree) return -1;
  if (item.way == Way::kTransfer) {
    const ChannelKey& key = routes_.channels()[item.channel];
    return item.sends ? key.to : key.from;
  }
  const int stop = item.way == Way::kLine ? item.line.waits_for() : item.direct.waits_for();
  return item.share.route().stops[static_cast<size_t>(stop)].process;
}

}  // namespace mgc
