// Which processes take part in a plan's collectives and transfers, and the channels between them.

#ifndef MGC_RUNTIME_COMM_ROUTES_H_
#define MGC_RUNTIME_COMM_ROUTES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/link.h"
#include "runtime/comm/process_map.h"
#include "runtime/load/load_plan.h"

namespace mgc {

// A process on the way of a collective, with its members, which are neighbours in the group.
struct Stop {
  int process = 0;
  int64_t first = 0;  // position of its first member
  int64_t last = 0;   // and behind its last
};

inline constexpr size_t kNoChannel = static_cast<size_t>(-1);

// A group whose members are in several processes, as one of these sees it: its processes stand in a
// line, in the order of their members.
struct Route {
  std::vector<Stop> stops;
  std::vector<int> stop_of;  // by member
  int mine = 0;              // this process's stop
  // Channels, by their places in Routes::channels.
  size_t to_next = kNoChannel, from_next = kNoChannel;
  size_t to_previous = kNoChannel, from_previous = kNoChannel;
  std::vector<size_t> to, from;  // by stop, but for this process's own
  bool all_reduces = false;      // whether collectives over it are
  size_t library_group = 0;      // if so: its place in Routes::library_groups

  const Stop& own() const { return stops[static_cast<size_t>(mine)]; }
};

class Routes {
 public:
  // `plans`, at least one, are loaded for the ranks that `map` gives to process `self`, each after
  // those before it (LoadPlan's `before`).
  Routes(absl::Span<const LoadedPlan* const> plans, const ProcessMap& map, int self);

  // All channels that begin or end in this process, sorted.
  const std::vector<ChannelKey>& channels() const { return channels_; }
  // The route of a local rank's group; null where all of its members are here. `group` is an index
  // into LoadedPlan::groups of any of the plans.
  const Route* Of(int group, int64_t rank) const { return of_[Place(group, rank)]; }
  // All of them, by group and its first rank.
  const std::map<std::pair<int, int>, Route>& all() const { return routes_; }
  // The channel that leads from one rank to another, one of which is here.
  size_t TransferChannel(int64_t from, int64_t to) const;
  // Between the first process and any other.
  size_t ControlChannel(int from, int to) const { return Find({from, to, ChannelKind::kControl}); }
  size_t WatchChannel(int from, int to) const { return Find({from, to, ChannelKind::kWatch}); }
  // The groups of this process that a library of all-reduces needs, sorted.
  const std::vector<LibraryGroupKey>& library_groups() const { return library_groups_; }
  // Most stops of a route.
  size_t most_stops() const { return most_stops_; }

 private:
  size_t Place(int group, int64_t rank) const {
    const RankRange local = map_.RanksOf(self_);
    return static_cast<size_t>(group * local.size() + rank - local.begin);
  }
  void AddPlan(const LoadedPlan& plan);
  void AddGroup(int group, const std::vector<int>& members, bool all_reduces);
  void AddLibraryGroup(int group, int first, Route* route);
  void AddTransfers(const LoadedPlan& plan, const LoadedProgram& program, int index);
  size_t Find(const ChannelKey& key) const;
  void FindChannels(int group, int first, Route* route) const;

  const ProcessMap& map_;
  const int self_;
  std::vector<ChannelKey> channels_;
  std::map<std::pair<int, int>, Route> routes_;
  std::vector<const Route*> of_;  // by group and local rank
  std::vector<LibraryGroupKey> library_groups_;
  size_t most_stops_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_ROUTES_H_
