#include "passes/search/layout_costs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/types/sharding.h"

namespace mgc {

StrategySpec ClassStrategy(const std::vector<std::string>& names) {
  StrategySpec spec;
  spec.name = "classes";
  StrategyRowSpec row;
  row.dims.push_back({kSampleDim, {"dp"}});
  for (const std::string& name : names) row.dims.push_back({name, {"tp"}});
  spec.rows.push_back(std::move(row));
  spec.splits.push_back({"dp", ""});
  const std::vector<std::string> axes = {"dp.1"};
  spec.stores = {{StoredKind::kStates, "", StrategyCondition::kZero, axes},
                 {StoredKind::kGradients, "", StrategyCondition::kZero2, axes},
                 {StoredKind::kParameters, "", StrategyCondition::kZero3, axes}};
  return spec;
}

absl::StatusOr<LayoutCost> CostOf(const Graph& model, const ModelDims& dims,
                                  const CompileOptions& options, const StrategySpec& strategy) {
  CompileOptions probe = options;
  probe.strategy = strategy;
  probe.run.check = false;
  probe.run.after_pass = nullptr;
  probe.limit_memory = false;
  probe.parallel.allow_replicated = true;  // what cuts nothing is compared too
  MGC_ASSIGN_OR_RETURN(const Plan plan, Compile(model, dims, probe));
  LayoutCost cost;
  cost.step_ns = plan.predicted_step_ns;
  for (const PlanClass& rank_class : plan.classes) {
    for (const HeldBlock& held : rank_class.blocks) {
      if (!held.owner) continue;
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        Sharding whole = entry.sharding;  // as forward reads it
        whole.storage = AxisList();
        cost.parameter_bytes +=
            LocalElements(entry.type, whole, plan.mesh) * SizeOf(entry.type.dtype);
      }
    }
  }
  return cost;
}

StrategySpec LayoutCosts::StrategyOf(const std::vector<std::string>& classes) const {
  std::vector<std::string> names;
  for (const std::string& name : classes) {
    for (const std::string& also : names_.at(name)) {
      if (std::find(names.begin(), names.end(), also) == names.end()) names.push_back(also);
    }
  }
  return ClassStrategy(names);
}

absl::StatusOr<std::string> LayoutCosts::PlacesOf(const std::vector<std::string>& classes) const {
  MGC_ASSIGN_OR_RETURN(const MeshStrategy bound,
                       BindStrategy(StrategyOf(classes), options_.parallel, sizes_));
  std::string places;
  for (const GraphInput& input : model_.inputs()) {
    const TensorType& type = model_.type(input.value);
    const Sharding home = bound.strategy.Seed(type, NamesOf(model_, input.value));
    absl::StrAppend(&places, ToString(home, bound.mesh), " ");
  }
  return places;
}

absl::StatusOr<LayoutCost> LayoutCosts::Of(const std::vector<std::string>& classes,
                                           size_t most_plans) {
  MGC_ASSIGN_OR_RETURN(const std::string places, PlacesOf(classes));
  const auto known = costs_.find(places);
  if (known != costs_.end()) return known->second;
  if (costs_.size() >= most_plans) {
    return absl::ResourceExhaustedError(absl::StrCat(most_plans, " plans are compiled"));
  }
  return costs_.emplace(places, CostOf(model_, dims_, options_, StrategyOf(classes))).first->second;
}

}  // namespace mgc
