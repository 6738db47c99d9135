// `mgc-plan groups` and `mgc-plan schedule`: from a plan, or from flags alone.

#include <utility>

#include "graph/base/status.h"
#include "passes/config/rank_groups.h"
#include "passes/plan/schedule.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/views/groups.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

constexpr char kGroups[] = "mgc-plan groups";
constexpr char kSchedule[] = "mgc-plan schedule";

// F6: a plan fixes what the flags would say.
void RefuseFlagsBesidePlan(const Words& files, bool any_flag, ParsedFlags* parsed) {
  if (files.empty() || !any_flag) return;
  parsed->errors.Add(
      {"F6", "a plan and flags of a configuration are given: the plan says it all", "one of both"});
}

int PrintGroups(const ParallelConfig& config, bool all, bool json) {
  const absl::StatusOr<std::vector<RankGroupKind>> kinds = BuildRankGroups(config);
  if (!kinds.ok()) return Fail(kinds.status(), kExitInfeasible);
  return Finish(json ? GroupsJson(*kinds) : GroupsText(*kinds, all));
}

int PrintSchedule(const ScheduleRows& rows, bool all, bool json) {
  return Finish(json ? ScheduleJson(rows) : ScheduleText(rows, all));
}

}  // namespace

int GroupsCommand(const Words& arguments) {
  Flags flags({kGroups,
               "[PLAN]",
               "the ranks that communicate together, of a plan or of flags alone",
               {"mgc-plan groups --world-size 16 --tp 2 --pp 4",
                "mgc-plan groups --world-size 64 --tp 8 --cp 2 --order tp-cp-ep-pp-dp --json"},
               ""});
  Words files;
  ParallelFlags given;
  bool all = false;
  bool json = false;
  flags.Arguments(0, 1, &files);
  flags.Switch("--all", "every group rank by rank, however many there are", &all);
  flags.Switch("--json", "one object from group kind to lists of ranks", &json);
  AddMeshFlags(&flags, &given);
  flags.Integer("--pp,--pipeline-model-parallel-size", "pipeline parallelism (default 1)",
                {1, kMaxWorldSize}, "G0", &given.pp);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&flags, arguments, &parsed)) return *code;
  CheckWords(&given, &parsed);
  const bool any = given.world_size || given.tp || given.cp || given.ep || given.etp || given.pp ||
                   given.order || given.tp_pp_dp_order;
  RefuseFlagsBesidePlan(files, any, &parsed);
  if (!files.empty()) {
    if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kGroups);
    const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
    if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
    return PrintGroups(ConfigOfMesh(plan->mesh), all, json);
  }
  const ParallelConfig config = ConfigOf(given, 1);
  const Diagnostics violations = WithoutRulesOf(parsed.bad_flags, CheckRankGroups(config));
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kGroups);
  }
  return PrintGroups(config, all, json);
}

int ScheduleCommand(const Words& arguments) {
  Flags flags({kSchedule,
               "[PLAN]",
               "the order of actions on every pipeline rank, of a plan or of flags alone",
               {"mgc-plan schedule --pp 4 --micro-batches 8",
                "mgc-plan schedule --pp 4 --vp 2 --micro-batches 8 --schedule interleaved"},
               "One line a rank: <stage>F<micro-batch> is a forward, <stage>B<micro-batch> a "
               "backward; of a plan\nalso its transfers, P (working copies) and U (update). Long "
               "lines have loops: 3 x (0F0 0B0) +1 runs\n3 times, each time with micro-batches 1 "
               "higher; ranks that follow a rule are one line, p the rank."});
  Words files;
  ParallelFlags given;
  absl::optional<int64_t> micro_batches;
  bool all = false;
  bool json = false;
  flags.Arguments(0, 1, &files);
  flags.Switch("--all", "every word of every rank, separated by commas, however many there are",
               &all);
  flags.Switch("--json", "the same as one object", &json);
  AddScheduleFlags(&flags, &given);
  flags.Integer("--micro-batches", "micro-batches per step (default 1)", {}, "S0", &micro_batches);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&flags, arguments, &parsed)) return *code;
  const bool any = given.pp || given.vp || given.schedule || given.group_size || micro_batches;
  RefuseFlagsBesidePlan(files, any, &parsed);
  if (!files.empty()) {
    if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kSchedule);
    const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
    if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
    return PrintSchedule(RowsOf(*plan), all, json);
  }
  const ParallelConfig config = ConfigOf(given, 1);
  const ScheduleSpec spec{config.schedule, config.pp, given.vp.value_or(1),
                          micro_batches.value_or(1), config.group_size};
  const Diagnostics violations = WithoutRulesOf(parsed.bad_flags, CheckSchedule(spec));
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kSchedule);
  }
  const absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(spec);
  if (!schedule.ok()) return Fail(schedule.status(), kExitInfeasible);
  return PrintSchedule(RowsOf(*schedule), all, json);
}

}  // namespace mgc
