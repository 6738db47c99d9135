#include "tools/views/sharded_again.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/optimizers.h"
#include "graph/types/layer_names.h"
#include "passes/config/strategy_text.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/simplify.h"
#include "tools/views/groups.h"

namespace mgc {
namespace {

const std::string* FindOption(const Plan& plan, absl::string_view name) {
  for (const auto& [option, value] : plan.options) {
    if (option == name) return &value;
  }
  return nullptr;
}

// The rows that the plan holds, or those of the default, which leaves no trace.
absl::StatusOr<StrategySpec> StrategyOf(const Plan& plan) {
  if (FindOption(plan, "--strategy") == nullptr) return DefaultStrategy();
  std::string text = "strategy @of_the_plan {\n";
  for (const auto& [name, value] : plan.options) {
    if (absl::StartsWith(name, "strategy.")) absl::StrAppend(&text, "  ", value, "\n");
  }
  return ParseStrategy(absl::StrCat(text, "}\n"), "the plan's strategy");
}

ParallelConfig ConfigOf(const Plan& plan) {
  ParallelConfig config = ConfigOfMesh(plan.mesh);
  config.sequence_parallel = FindOption(plan, "--sequence-parallel") != nullptr;
  const std::string* zero = FindOption(plan, "--zero");
  if (zero != nullptr && !absl::SimpleAtoi(*zero, &config.zero)) config.zero = 0;
  const std::string* group = FindOption(plan, "--zero-group");
  if (group != nullptr && !absl::SimpleAtoi(*group, &config.zero_group)) config.zero_group = 0;
  config.reshard_after_forward = FindOption(plan, "--no-reshard-after-forward") == nullptr;
  return config;
}

absl::Status Differs(absl::string_view name) {
  return absl::FailedPreconditionError(
      absl::StrCat("%", name, " lies otherwise than the plan's own flags and strategy come to"));
}

// What the plan holds of a parameter must be what the rows come to.
absl::Status CheckAgainst(const Plan& plan, const Graph& sharded) {
  for (const PlanClass& plan_class : plan.classes) {
    for (const HeldBlock& held : plan_class.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const std::string name = NameForLayer(entry.name, held.layer);
        const ValueId param = sharded.FindValue(name);
        const auto lies_alike = [&](const ParamState& kept) {
          const ValueId state = sharded.FindValue(StateName(name, kept.name));
          return state != kNone && sharded.sharding(state) == entry.state_sharding;
        };
        const bool same = param != kNone && sharded.sharding(param) == entry.sharding &&
                          std::all_of(entry.states.begin(), entry.states.end(), lies_alike);
        if (!same) return Differs(name);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardedAgain> ShardAgain(const Plan& plan) {
  MGC_ASSIGN_OR_RETURN(const StrategySpec spec, StrategyOf(plan));
  MGC_ASSIGN_OR_RETURN(const Graph backward, Differentiate(Simplify(plan.model)));
  ShardedAgain again;
  again.training = Simplify(backward);
  MGC_ASSIGN_OR_RETURN(MeshStrategy bound,
                       BindStrategy(spec, ConfigOf(plan), SizesOf(again.training)));
  if (bound.mesh != plan.mesh) {
    return absl::FailedPreconditionError("the plan's mesh is not that of its flags and strategy");
  }
  again.strategy = std::move(bound.strategy);
  MGC_ASSIGN_OR_RETURN(again.sharded,
                       Shard(again.training, bound.mesh, again.strategy, &again.record));
  MGC_RETURN_IF_ERROR(CheckAgainst(plan, again.sharded.graph));
  return again;
}

}  // namespace mgc
