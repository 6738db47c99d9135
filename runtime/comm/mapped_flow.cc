#include "runtime/comm/mapped_flow.h"

#include <algorithm>
#include <cstring>

#include "runtime/comm/run_exchanges.h"

namespace mgc {
namespace {

// Cells that are run before something else is looked after, and those worth a hand-over.
constexpr int64_t kCellsAtOnce = 256;
constexpr int64_t kCellsAlone = 2;

// Where a member's tiles of one exchange lie, from the begin of its process's region.
struct Places {
  int64_t input = 0;
  int64_t output = 0;
};

int64_t BytesOf(int64_t members) { return members * static_cast<int64_t>(sizeof(Places)); }

}  // namespace

MappedFlow::MappedFlow(const FlowRoom& room, const FlowMeans& means)
    : means_(means),
      writers_(room.stops),
      readers_(room.stops),
      inputs_(room.parts * room.members),
      outputs_(room.parts * room.members) {
  exchanges_.reserve(room.parts);
}

bool MappedFlow::Reaches(const Route& route, const RegionBases& arenas) {
  return !arenas.empty() &&
         std::all_of(route.stops.begin(), route.stops.end(), [&arenas](const Stop& stop) {
           return arenas[static_cast<size_t>(stop.process)] != nullptr;
         });
}

bool MappedFlow::Serves(const Share& share, const RegionBases& arenas) {
  // A message may end before its room does, but not before half of it is used.
  constexpr int64_t kMostTold = kSlots * kMessageBytes / 2;
  const auto parts = static_cast<int64_t>(share.exchanges().size());
  const auto fits = [parts](const Stop& stop) {
    const int64_t told = PieceWriter::Aligned(BytesOf(stop.last - stop.first));
    return told <= kMessageBytes && parts * told <= kMostTold;
  };
  const std::vector<Stop>& stops = share.route().stops;
  return Reaches(share.route(), arenas) && std::all_of(stops.begin(), stops.end(), fits);
}

void MappedFlow::Begin(const Share& share, Link& link) {
  share_ = &share;
  const Route& route = share.route();
  for (size_t s = 0; s < route.stops.size(); ++s) {
    if (s == share.mine()) continue;
    writers_[s] = PieceWriter(&link.sender(route.to[s]));
    readers_[s] = PieceReader(&link.receiver(route.from[s]));
  }
  const size_t members = route.stop_of.size();
  exchanges_.clear();
  for (size_t part = 0; part < share.exchanges().size(); ++part) {
    const TiledExchange& own = share.exchanges()[part];
    const size_t first = part * members;
    for (int64_t m = route.own().first; m < route.own().last; ++m) {
      const auto member = static_cast<size_t>(m);
      inputs_[first + member] = own.inputs[member];
      outputs_[first + member] = own.outputs[member];
    }
    exchanges_.push_back({own.exchange, {&inputs_[first], members}, {&outputs_[first], members}});
  }
  const int64_t cells = share.num_cells();
  const auto stops = static_cast<int64_t>(route.stops.size());
  next_ = cells * route.mine / stops;
  end_ = cells * (route.mine + 1) / stops;
  GoOn(At::kTelling);
}

bool MappedFlow::Advance() {
  bool moved = false;
  for (;;) {
    switch (at_) {
      case At::kTelling:
        if (!Tell()) return moved;
        GoOn(At::kHearing);
        break;
      case At::kHearing:
        if (!Hear()) return moved;
        GoOn(At::kWorking);
        break;
      case At::kWorking:
        if (!Work()) return true;
        GoOn(At::kSayingSo);
        break;
      case At::kSayingSo:
        if (!SayDone()) return moved;
        GoOn(At::kWaiting);
        break;
      case At::kWaiting:
        if (!Wait()) return moved;
        at_ = At::kEnd;
        return true;
      case At::kEnd:
        return moved;
    }
    moved = true;
  }
}

void MappedFlow::GoOn(At next) {
  at_ = next;
  stop_ = share_->mine() == 0 ? 1 : 0;
  part_ = 0;
}

void MappedFlow::StepOn() {
  part_ = 0;
  ++stop_;
  if (stop_ == share_->mine()) ++stop_;
}

char* MappedFlow::BaseOf(size_t stop) const {
  return means_.arenas[static_cast<size_t>(share_->route().stops[stop].process)];
}

bool MappedFlow::Tell() {
  const Stop& own = share_->route().own();
  const char* const base = BaseOf(share_->mine());
  const auto members = static_cast<size_t>(own.last - own.first);
  for (; stop_ < share_->route().stops.size(); StepOn()) {
    for (; part_ < exchanges_.size(); ++part_) {
      const int64_t bytes = BytesOf(static_cast<int64_t>(members));
      char* const room = writers_[stop_].Reserve(bytes);
      if (room == nullptr) return false;
      for (size_t m = 0; m < members; ++m) {
        const size_t member = static_cast<size_t>(own.first) + m;
        const Places places = {exchanges_[part_].inputs[member] - base,
                               exchanges_[part_].outputs[member] - base};
        std::memcpy(room + m * sizeof(places), &places, sizeof(places));
      }
      writers_[stop_].Commit(bytes);
    }
    writers_[stop_].Flush();
  }
  return true;
}

bool MappedFlow::Hear() {
  for (; stop_ < share_->route().stops.size(); StepOn()) {
    for (; part_ < exchanges_.size(); ++part_) {
      const char* const from = readers_[stop_].Peek();
      if (from == nullptr) return false;
      HearPart(part_, from);
      readers_[stop_].Skip(BytesOf(share_->MembersOf(stop_).size()));
    }
  }
  return true;
}

void MappedFlow::HearPart(size_t part, const char* from) {
  const MemberRange members = share_->MembersOf(stop_);
  char* const base = BaseOf(stop_);
  const size_t first = part * share_->route().stop_of.size() + static_cast<size_t>(members.first);
  for (size_t m = 0; m < static_cast<size_t>(members.size()); ++m) {
    Places places;
    std::memcpy(&places, from + m * sizeof(places), sizeof(places));
    inputs_[first + m] = base + places.input;
    outputs_[first + m] = base + places.output;
  }
}

bool MappedFlow::Work() {
  const int64_t count = std::min(kCellsAtOnce, end_ - next_);
  means_.parallel->For(count, kCellsAlone, [this](int64_t begin, int64_t end) {
    CellPlace place = share_->PlaceOf(next_ + begin);
    for (int64_t i = begin; i < end; ++i, share_->StepOn(&place)) {
      const PlacedCell at = share_->At(place);
      RunCell(exchanges_[place.part], at.cells, at.cell);
    }
  });
  next_ += count;
  return next_ == end_;
}

bool MappedFlow::SayDone() {
  for (; stop_ < share_->route().stops.size(); StepOn()) {
    if (writers_[stop_].Reserve(1) == nullptr) return false;
    writers_[stop_].Commit(1);
    writers_[stop_].Flush();
  }
  return true;
}

bool MappedFlow::Wait() {
  for (; stop_ < share_->route().stops.size(); StepOn()) {
    if (readers_[stop_].Peek() == nullptr) return false;
    readers_[stop_].Skip(1);
  }
  return true;
}

}  // namespace mgc
