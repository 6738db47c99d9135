#include "tools/cli/check_run.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "runtime/comm/process_map.h"
#include "runtime/comm/routes.h"
#include "runtime/load/load_plan.h"
#include "runtime/state/parameters.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

void CountClasses(const LoadedPlan& loaded, ResolvedRanks* out) {
  for (const LoadedClass& rank_class : loaded.classes) {
    const int64_t ranks = static_cast<int64_t>(rank_class.local.size());
    if (ranks == 0) continue;
    const int coordinate = rank_class.plan_class->coordinate;
    out->classes.push_back(coordinate);
    for (size_t s = 0; s < loaded.plan.stages.size(); ++s) {
      if (loaded.plan.stages[s].rank_class == coordinate) {
        out->stages.push_back(static_cast<int64_t>(s));
      }
    }
    for (const std::vector<LoadedCall>* calls : rank_class.train.calls) {
      out->calls += ranks * static_cast<int64_t>(calls->size());
    }
    out->arena_bytes += ranks * rank_class.plan_class->memory.peak;
  }
  std::sort(out->stages.begin(), out->stages.end());
}

// A group that joins classes has no member among the ranks of others.
int64_t CountGroups(const LoadedPlan& loaded) {
  int64_t groups = 0;
  for (const std::vector<std::vector<int>>& set : loaded.groups) {
    std::set<int> firsts;
    for (size_t place = 0; place < set.size(); ++place) {
      const std::vector<int>& members = set[place];
      const int rank = static_cast<int>(loaded.local.begin) + static_cast<int>(place);
      if (std::binary_search(members.begin(), members.end(), rank)) firsts.insert(members.front());
    }
    groups += static_cast<int64_t>(firsts.size());
  }
  return groups;
}

void CountChannels(const Routes& routes, int self, ResolvedRanks* out) {
  std::set<int> peers;
  for (const ChannelKey& channel : routes.channels()) {
    if (channel.kind == ChannelKind::kControl || channel.kind == ChannelKind::kWatch) continue;
    ++out->channels;
    peers.insert(channel.from == self ? channel.to : channel.from);
  }
  out->peers = static_cast<int64_t>(peers.size());
}

}  // namespace

absl::StatusOr<ResolvedRanks> ResolveRanks(const Plan& plan, const KernelList& kernels,
                                           absl::optional<int64_t> rank) {
  MGC_RETURN_IF_ERROR(CheckParameters(plan));
  ResolvedRanks resolved;
  resolved.rank = rank;
  resolved.world_size = plan.mesh.world_size();
  const RankRange local =
      rank.has_value() ? RankRange{*rank, *rank + 1} : RankRange{0, resolved.world_size};
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedPlan> loaded,
                       LoadPlan(plan, kernels, /*seed=*/0, /*width=*/1, local));
  CountClasses(*loaded, &resolved);
  resolved.kernels = loaded->kernels.size();
  resolved.groups = CountGroups(*loaded);
  resolved.workspace_bytes = loaded->kernels.workspace_bytes();
  if (rank.has_value()) {
    MGC_ASSIGN_OR_RETURN(const ProcessMap map,
                         ProcessMap::Create(resolved.world_size, resolved.world_size));
    const int self = static_cast<int>(*rank);
    const LoadedPlan* const plans[] = {loaded.get()};
    CountChannels(Routes(plans, map, self), self, &resolved);
  }
  return resolved;
}

std::string ResolvedLine(const ResolvedRanks& r) {
  const auto list = [](absl::string_view one, absl::string_view many,
                       const std::vector<int64_t>& numbers) {
    return absl::StrCat(numbers.size() == 1 ? one : many, " ", absl::StrJoin(numbers, " "));
  };
  std::string line = r.rank.has_value() ? absl::StrCat("rank ", *r.rank, " of ", r.world_size)
                                        : absl::StrCat("all ", r.world_size, " ranks");
  absl::StrAppend(&line, " | ", list("class", "classes", r.classes), ", ",
                  list("stage", "stages", r.stages), " | ", r.calls, " calls a step | ", r.kernels,
                  " kernels | ", r.groups, " groups | ");
  if (r.rank.has_value()) {
    absl::StrAppend(&line, r.channels, " channels, with ", r.peers, " ranks | ");
  }
  absl::StrAppend(&line, r.rank.has_value() ? "arena " : "arenas ", BytesText(r.arena_bytes),
                  " | workspace ", BytesText(r.workspace_bytes), " a thread");
  return line;
}

std::string ResolvedJson(const ResolvedRanks& r) {
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject();
  if (r.rank.has_value()) json.Integer("rank", *r.rank);
  json.Integer("world_size", r.world_size);
  json.Key("classes").Integers(r.classes).Key("stages").Integers(r.stages);
  json.Integer("calls", r.calls).Integer("kernels", r.kernels).Integer("groups", r.groups);
  if (r.rank.has_value()) json.Integer("channels", r.channels).Integer("peers", r.peers);
  json.Integer("arena_bytes", r.arena_bytes).Integer("workspace_bytes", r.workspace_bytes);
  return std::move(json.EndObject()).Text();
}

int CheckRun(const Plan& plan, const RunFlags& flags, const KernelList& kernels,
             absl::string_view command) {
  const int64_t last = plan.mesh.world_size() - 1;
  if (flags.rank.value_or(0) > last) {
    Diagnostics usage;
    usage.Add({"F3",
               absl::StrCat("--rank is ", *flags.rank, ", must be between 0 and ", last, " of ",
                            "this plan"),
               absl::StrCat(last)});
    return Refuse(usage, Diagnostics(), command);
  }
  const absl::StatusOr<ResolvedRanks> resolved = ResolveRanks(plan, kernels, flags.rank);
  if (!resolved.ok()) return Fail(resolved.status(), kExitBadModel);
  const std::string line = flags.json ? ResolvedJson(*resolved) : ResolvedLine(*resolved);
  return Finish(absl::StrCat(line, "\n"));
}

}  // namespace mgc
