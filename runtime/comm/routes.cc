#include "runtime/comm/routes.h"

#include <algorithm>
#include <cstdlib>

#include "graph/base/status.h"
#include "runtime/comm/cells.h"

namespace mgc {

namespace {

bool IsAllReduce(const LoadedProgram& program, const CommItem& item) {
  const LoadedCall& call = (*program.calls[item.action])[item.call];
  return IsAllReduce(call.segment->exchanges[item.exchange].parts[0].kind);
}

}  // namespace

Routes::Routes(absl::Span<const LoadedPlan* const> plans, const ProcessMap& map, int self)
    : map_(map), self_(self) {
  for (int process = 1; process < map.processes(); ++process) {
    if (self != 0 && self != process) continue;
    for (ChannelKind kind : {ChannelKind::kControl, ChannelKind::kWatch}) {
      channels_.push_back({0, process, kind});
      channels_.push_back({process, 0, kind});
    }
  }
  of_.resize(plans.back()->groups.size() * static_cast<size_t>(map.RanksOf(self).size()));
  for (const LoadedPlan* plan : plans) AddPlan(*plan);
  std::sort(channels_.begin(), channels_.end());
  channels_.erase(std::unique(channels_.begin(), channels_.end()), channels_.end());
  for (auto& [key, route] : routes_) {
    FindChannels(key.first, key.second, &route);
    if (route.all_reduces) AddLibraryGroup(key.first, key.second, &route);
  }
}

void Routes::AddPlan(const LoadedPlan& plan) {
  for (const LoadedClass& rank_class : plan.classes) {
    std::map<int, bool> groups;  // over which the class has collectives; whether all-reduces
    for (const LoadedProgram* program : {&rank_class.train, &rank_class.eval}) {
      for (const CommItem& item : program->comm) {
        if (item.transfer >= 0) continue;
        bool& all_reduces = groups[item.group];
        all_reduces = all_reduces || IsAllReduce(*program, item);
      }
    }
    for (int rank : rank_class.local) {
      for (const auto& [group, all_reduces] : groups) {
        AddGroup(group, plan.GroupOf(group, rank), all_reduces);
      }
      const int index = plan.ranks[static_cast<size_t>(rank)].index;
      AddTransfers(plan, rank_class.train, index);
      AddTransfers(plan, rank_class.eval, index);
    }
  }
}

void Routes::AddGroup(int group, const std::vector<int>& members, bool all_reduces) {
  const RankRange local = map_.RanksOf(self_);
  const auto here = [&](int member) { return local.Contains(member); };
  if (std::all_of(members.begin(), members.end(), here)) return;
  if (std::none_of(members.begin(), members.end(), here)) return;
  const int first = members.front();
  const auto [it, is_new] = routes_.try_emplace({group, first});
  Route& route = it->second;
  route.all_reduces = route.all_reduces || all_reduces;
  if (!is_new) return;
  for (int member : members) {
    if (here(member)) of_[Place(group, member)] = &route;
  }
  for (size_t m = 0; m < members.size(); ++m) {
    const int process = map_.ProcessOf(members[m]);
    if (route.stops.empty() || route.stops.back().process != process) {
      if (process == self_) route.mine = static_cast<int>(route.stops.size());
      route.stops.push_back({process, static_cast<int64_t>(m), 0});
    }
    route.stops.back().last = static_cast<int64_t>(m) + 1;
    route.stop_of.push_back(static_cast<int>(route.stops.size()) - 1);
  }
  most_stops_ = std::max(most_stops_, route.stops.size());
  for (int s = 0; s < static_cast<int>(route.stops.size()); ++s) {
    const int peer = route.stops[static_cast<size_t>(s)].process;
    if (peer == self_) continue;
    for (ChannelKind kind : {ChannelKind::kDirect, ChannelKind::kLine}) {
      if (kind == ChannelKind::kLine && std::abs(s - route.mine) != 1) continue;
      channels_.push_back({self_, peer, kind, group, first});
      channels_.push_back({peer, self_, kind, group, first});
    }
  }
}

void Routes::AddLibraryGroup(int group, int first, Route* route) {
  route->library_group = library_groups_.size();
  library_groups_.push_back({group, first, {}});
  for (const Stop& stop : route->stops) library_groups_.back().processes.push_back(stop.process);
}

void Routes::AddTransfers(const LoadedPlan& plan, const LoadedProgram& program, int index) {
  const int own = program.steps->plan_class->coordinate;
  const auto rank_of = [&](int rank_class) {
    return plan.classes[static_cast<size_t>(rank_class)].ranks[static_cast<size_t>(index)];
  };
  for (const StepTransfer& transfer : program.steps->transfers) {
    int from = rank_of(own);
    int to = rank_of(transfer.peer_class);
    if (map_.ProcessOf(from) == map_.ProcessOf(to)) continue;
    if (!IsSend(transfer.transfer->ref.kind)) std::swap(from, to);
    channels_.push_back(
        {map_.ProcessOf(from), map_.ProcessOf(to), ChannelKind::kTransfer, from, to});
  }
}

size_t Routes::Find(const ChannelKey& key) const {
  const auto it = std::lower_bound(channels_.begin(), channels_.end(), key);
  MGC_CHECK(it != channels_.end() && *it == key) << "a channel that nobody listed";
  return static_cast<size_t>(it - channels_.begin());
}

void Routes::FindChannels(int group, int first, Route* route) const {
  route->to.resize(route->stops.size(), kNoChannel);
  route->from.resize(route->stops.size(), kNoChannel);
  for (int s = 0; s < static_cast<int>(route->stops.size()); ++s) {
    const int peer = route->stops[static_cast<size_t>(s)].process;
    if (peer == self_) continue;
    route->to[s] = Find({self_, peer, ChannelKind::kDirect, group, first});
    route->from[s] = Find({peer, self_, ChannelKind::kDirect, group, first});
    if (std::abs(s - route->mine) != 1) continue;
    const size_t to = Find({self_, peer, ChannelKind::kLine, group, first});
    const size_t from = Find({peer, self_, ChannelKind::kLine, group, first});
    (s > route->mine ? route->to_next : route->to_previous) = to;
    (s > route->mine ? route->from_next : route->from_previous) = from;
  }
}

size_t Routes::TransferChannel(int64_t from, int64_t to) const {
  return Find({map_.ProcessOf(from), map_.ProcessOf(to), ChannelKind::kTransfer,
               static_cast<int>(from), static_cast<int>(to)});
}

}  // namespace mgc
