#include "runtime/comm/testing/flow_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "kernels/parallel.h"
#include "runtime/comm/direct_flow.h"
#include "runtime/comm/library_flow.h"
#include "runtime/comm/line_flow.h"
#include "runtime/comm/mapped_flow.h"
#include "runtime/comm/run_exchanges.h"

namespace mgc {

using Random = std::mt19937_64;

// Members' tiles of one exchange, as bytes.
class FlowRunner::Tiles {
 public:
  // Of all members.
  Tiles(const Exchange& x, const FlowCase& c, Random* random) : in_place_(c.in_place) {
    const TileSizes sizes = SizesOf(x);
    const int64_t bytes = SizeOf(x.dtype);
    for (size_t m = 0; m < x.piece.size(); ++m) {
      in_.emplace_back(static_cast<size_t>(sizes.in * bytes));
      FillTile(x.dtype, c.whole, random, &in_.back());
      out_.emplace_back(in_place_ ? 0 : static_cast<size_t>(sizes.out * bytes), 'x');
    }
    Point({0, static_cast<int64_t>(x.piece.size())});
  }
  // Those of some members, of which others may be asked for by nobody; in memory of their own, or
  // from `memory` on, which then goes on behind them.
  Tiles(const Tiles& all, const MemberRange& members, char** memory)
      : in_place_(all.in_place_), in_(all.in_.size()), out_(all.in_.size()) {
    for (auto m = static_cast<size_t>(members.first); m < static_cast<size_t>(members.last); ++m) {
      in_[m] = all.in_[m];
      out_[m] = all.out_[m];
    }
    Point(members);
    if (*memory != nullptr) MoveTo(members, memory);
  }

  TiledExchange Tile(const Exchange& x) const { return {&x, inputs_, outputs_}; }
  // Wherever it lies.
  std::string ResultOf(int64_t member) const {
    const auto m = static_cast<size_t>(member);
    return {outputs_[m], (in_place_ ? in_ : out_)[m].size()};
  }

 private:
  void MoveTo(const MemberRange& members, char** memory) {
    const auto move = [memory](const std::vector<char>& tile) {
      char* const to = *memory;
      std::copy(tile.begin(), tile.end(), to);
      *memory += PieceWriter::Aligned(static_cast<int64_t>(tile.size()));
      return to;
    };
    for (auto m = static_cast<size_t>(members.first); m < static_cast<size_t>(members.last); ++m) {
      char* const in = move(in_[m]);
      inputs_[m] = in;
      outputs_[m] = in_place_ ? in : move(out_[m]);
    }
  }
  void Point(const MemberRange& members) {
    inputs_.resize(in_.size());
    outputs_.resize(in_.size());
    for (auto m = static_cast<size_t>(members.first); m < static_cast<size_t>(members.last); ++m) {
      inputs_[m] = in_[m].data();
      outputs_[m] = in_place_ ? in_[m].data() : out_[m].data();
    }
  }

  bool in_place_;
  std::vector<std::vector<char>> in_, out_;
  std::vector<const char*> inputs_;
  std::vector<char*> outputs_;
};

std::vector<ChannelKey> FlowChannels(int processes, int self, int lanes) {
  std::vector<ChannelKey> channels;
  for (int peer = 0; peer < processes; ++peer) {
    for (int lane = 0; lane < lanes && peer != self; ++lane) {
      for (ChannelKind kind : {ChannelKind::kLine, ChannelKind::kDirect}) {
        channels.push_back({self, peer, kind, lane});
        channels.push_back({peer, self, kind, lane});
      }
    }
  }
  std::sort(channels.begin(), channels.end());
  return channels;
}

std::vector<LibraryGroupKey> FlowLibraryGroups(int processes, int self, int lanes) {
  std::vector<LibraryGroupKey> groups;
  for (int set = 0; set < 1 << processes; ++set) {
    LibraryGroupKey key;
    key.a = set;
    for (int p = 0; p < processes; ++p) {
      if ((set >> p & 1) != 0) key.processes.push_back(p);
    }
    if ((set >> self & 1) == 0 || key.processes.size() < 2) continue;
    for (key.b = 0; key.b < lanes; ++key.b) groups.push_back(key);
  }
  return groups;
}

size_t FlowRunner::LibraryGroupOf(const FlowCase& c) const {
  int set = 0;
  for (const Stop& stop : c.stops) set |= 1 << stop.process;
  const auto it = std::find_if(groups_->begin(), groups_->end(), [&](const LibraryGroupKey& key) {
    return key.a == set && key.b == lane_;
  });
  return static_cast<size_t>(it - groups_->begin());
}

Route FlowRunner::RouteOf(const FlowCase& c) const {
  Route route;
  route.stops = c.stops;
  if (c.way == FlowWay::kLibrary) {
    route.library_group = LibraryGroupOf(c);
    while (route.own().process != self_) ++route.mine;
    return route;
  }
  route.mine = self_;
  route.to.resize(c.stops.size());
  route.from.resize(c.stops.size());
  for (const Stop& stop : c.stops) {
    route.stop_of.insert(route.stop_of.end(), static_cast<size_t>(stop.last - stop.first),
                         stop.process);
  }
  for (size_t i = 0; i < channels_.size(); ++i) {
    const ChannelKey& key = channels_[i];
    if (key.a != lane_) continue;
    const bool sends = key.from == self_;
    const int peer = sends ? key.to : key.from;
    if (key.kind == ChannelKind::kDirect) {
      (sends ? route.to : route.from)[static_cast<size_t>(peer)] = i;
      continue;
    }
    if (peer == self_ + 1) (sends ? route.to_next : route.from_next) = i;
    if (peer == self_ - 1) (sends ? route.to_previous : route.from_previous) = i;
  }
  return route;
}

absl::Status FlowRunner::Move(const FlowCase& c, const Route& route, std::vector<Tiles>* tiles) {
  std::vector<TiledExchange> exchanges;
  for (size_t p = 0; p < c.parts.size(); ++p) exchanges.push_back((*tiles)[p].Tile(c.parts[p]));
  Share share(c.parts.size());
  share.Begin(exchanges, route);
  LineFlow line;
  DirectFlow direct(c.stops.size());
  SerialParallel serial;
  const FlowMeans means = {bases_, library_, &serial};
  MappedFlow mapped({c.parts.size(), c.stops.size(), route.stop_of.size()}, means);
  LibraryFlow library(library_);
  switch (c.way) {
    case FlowWay::kLine:
      return RunFlow(line, share);
    case FlowWay::kDirect:
      return RunFlow(direct, share);
    case FlowWay::kLibrary:
      return RunFlow(library, share);
    case FlowWay::kMapped:
      break;
  }
  return RunFlow(mapped, share);
}

absl::Status FlowRunner::RunFlow(Flow& flow, const Share& share) {
  flow.Begin(share, link_);
  while (!flow.done()) {
    MGC_RETURN_IF_ERROR(link_.Poll());
    if (library_ != nullptr) MGC_RETURN_IF_ERROR(library_->Poll());
    if (!flow.Advance()) std::this_thread::yield();
    if (delays_() % 64 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(delays_() % 200));
    }
  }
  return absl::OkStatus();
}

absl::Status FlowRunner::Run(const FlowCase& c, int times, uint64_t seed) {
  const auto is_own = [this](const Stop& stop) { return stop.process == self_; };
  if (std::none_of(c.stops.begin(), c.stops.end(), is_own)) return absl::OkStatus();
  Random random(seed);
  const Route route = RouteOf(c);
  const MemberRange members = {route.own().first, route.own().last};
  for (int time = 0; time < times; ++time) {
    std::vector<Tiles> want, made;
    SerialParallel serial;
    char* memory =
        bases_.empty() ? nullptr : bases_[static_cast<size_t>(self_)] + lane_ * kFlowRegionBytes;
    for (const Exchange& part : c.parts) {
      want.emplace_back(part, c, &random);
      made.emplace_back(want.back(), members, &memory);
      const TiledExchange tiled = want.back().Tile(part);
      MGC_RETURN_IF_ERROR(RunExchanges({&tiled, 1}, serial));
    }
    MGC_RETURN_IF_ERROR(Move(c, route, &made));
    for (size_t p = 0; p < c.parts.size(); ++p) {
      for (int64_t m = members.first; m < members.last; ++m) {
        if (made[p].ResultOf(m) == want[p].ResultOf(m)) continue;
        return absl::InternalError(
            absl::StrCat("wrong result of member ", m, " in part ", p, ", time ", time));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FlowRunner::RunCases(int processes, int cases, uint64_t seed) {
  constexpr int kTimes = 2;
  Random random(seed);
  for (int i = 0; i < cases; ++i) {
    const FlowCase c = library_ != nullptr ? DrawLibraryCase(processes, &random)
                                           : DrawFlowCase(processes, !bases_.empty(), &random);
    if (absl::Status status = Run(c, kTimes, random()); !status.ok()) {
      return Annotate(status, absl::StrCat("process ", self_, ", lane ", lane_, ", seed ", seed,
                                           ", case ", i, ": ", c.Describe()));
    }
  }
  return absl::OkStatus();
}

}  // namespace mgc
