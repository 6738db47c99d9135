#include "passes/search/class_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/types/sharding.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {
namespace {

int64_t BytesOf(const TensorType& type) { return type.NumElements() * SizeOf(type.dtype); }

std::vector<TensorType> ParameterTypes(const Graph& model) {
  std::vector<TensorType> types;
  for (const GraphInput& input : model.inputs()) {
    if (input.kind == InputKind::kParam) types.push_back(model.type(input.value));
  }
  return types;
}

bool HasDim(const TensorType& type, const std::string& name) {
  return std::any_of(type.dims.begin(), type.dims.end(),
                     [&](const Dim& dim) { return dim.name == name; });
}

// The greedy search and its repairs. Costs are remembered by the list of classes.
class ClassSearch {
 public:
  ClassSearch(const Graph& model, const ModelDims& dims, const CompileOptions& options,
              std::vector<std::string> classes, int64_t budget)
      : model_(model),
        dims_(dims),
        options_(options),
        classes_(std::move(classes)),
        budget_(budget) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    MGC_RETURN_IF_ERROR(Consider({}));
    while (true) {
      const std::vector<std::string> before = best_;
      MGC_RETURN_IF_ERROR(TryToAdd(before));
      MGC_RETURN_IF_ERROR(TryToLeaveOut(before));
      MGC_RETURN_IF_ERROR(TryToExchange(before));
      if (best_ == before) return best_;
    }
  }

 private:
  using Rank = std::tuple<int64_t, int64_t, size_t>;  // bytes above the budget, ns, classes

  // Keeps a list that is better than the best so far.
  absl::Status Consider(const std::vector<std::string>& classes) {
    if (!tried_.insert(classes).second) return absl::OkStatus();
    MGC_ASSIGN_OR_RETURN(const LayoutCost cost,
                         CostOf(model_, dims_, options_, ClassStrategy(classes)));
    const Rank rank{std::max<int64_t>(cost.parameter_bytes - budget_, 0), cost.step_ns,
                    classes.size()};
    if (tried_.size() > 1 && rank >= rank_) return absl::OkStatus();
    rank_ = rank;
    best_ = classes;
    return absl::OkStatus();
  }

  absl::Status TryToAdd(const std::vector<std::string>& from) {
    for (const std::string& added : classes_) {
      if (std::find(from.begin(), from.end(), added) != from.end()) continue;
      std::vector<std::string> more = from;
      more.push_back(added);
      MGC_RETURN_IF_ERROR(Consider(more));
    }
    return absl::OkStatus();
  }

  absl::Status TryToLeaveOut(const std::vector<std::string>& from) {
    for (size_t i = 0; i < from.size(); ++i) {
      std::vector<std::string> fewer = from;
      fewer.erase(fewer.begin() + static_cast<int64_t>(i));
      MGC_RETURN_IF_ERROR(Consider(fewer));
    }
    return absl::OkStatus();
  }

  // Another class in the place of one, and two classes in the other order.
  absl::Status TryToExchange(const std::vector<std::string>& from) {
    for (size_t i = 0; i < from.size(); ++i) {
      for (const std::string& other : classes_) {
        std::vector<std::string> changed = from;
        const auto at = std::find(changed.begin(), changed.end(), other);
        if (at == changed.end()) {
          changed[i] = other;
        } else {
          std::swap(changed[i], *at);
        }
        MGC_RETURN_IF_ERROR(Consider(changed));
      }
    }
    return absl::OkStatus();
  }

  const Graph& model_;
  const ModelDims& dims_;
  const CompileOptions& options_;
  const std::vector<std::string> classes_;
  const int64_t budget_;
  std::set<std::vector<std::string>> tried_;
  std::vector<std::string> best_;
  Rank rank_;
};

}  // namespace

StrategySpec ClassStrategy(const std::vector<std::string>& classes) {
  StrategySpec spec;
  spec.name = "classes";
  StrategyRowSpec row;
  row.dims.push_back({kSampleDim, {"dp"}});
  for (const std::string& name : classes) row.dims.push_back({name, {"tp"}});
  spec.rows.push_back(std::move(row));
  StoreSpec states;
  states.when = StrategyCondition::kZero;
  states.axes = {"dp"};
  spec.stores.push_back(std::move(states));
  return spec;
}

absl::StatusOr<bool> CutsParameters(const Graph& model, const ParallelConfig& config,
                                    const StrategySpec& strategy) {
  MGC_ASSIGN_OR_RETURN(const MeshStrategy bound, BindStrategy(strategy, config, SizesOf(model)));
  const AxisSet tp = bound.mesh.Find("tp").AsSet();
  return std::any_of(model.inputs().begin(), model.inputs().end(), [&](const GraphInput& input) {
    if (input.kind != InputKind::kParam) return false;
    const Sharding home = bound.strategy.Seed(model.type(input.value), NamesOf(model, input.value));
    return home.UsedAxes().Intersects(tp);
  });
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
        cost.parameter_bytes +=
            LocalElements(entry.type, entry.sharding, plan.mesh) * SizeOf(entry.type.dtype);
      }
    }
  }
  return cost;
}

absl::StatusOr<std::vector<ClassChoice>> ClassChoices(const Graph& model, const ModelDims& dims,
                                                      const CompileOptions& options) {
  const std::vector<TensorType> params = ParameterTypes(model);
  std::vector<ClassChoice> choices;
  const DimClasses classes(model);
  for (const DimClass& c : classes.classes()) {
    const bool known = std::any_of(choices.begin(), choices.end(),
                                   [&](const ClassChoice& other) { return other.name == c.name; });
    if (known || c.name == kSampleDim || c.size == 1) continue;
    ClassChoice choice;
    choice.name = c.name;
    choice.size = c.size;
    choice.divides = c.size % options.parallel.tp == 0;
    for (const TensorType& type : params) {
      if (HasDim(type, c.name)) choice.parameter_bytes += BytesOf(type);
    }
    if (choice.parameter_bytes > 0) choices.push_back(std::move(choice));
  }
  for (ClassChoice& choice : choices) {
    if (!choice.divides) continue;
    MGC_ASSIGN_OR_RETURN(choice.alone, CostOf(model, dims, options, ClassStrategy({choice.name})));
  }
  return choices;
}

int64_t ParameterBudget(const Graph& model, const std::vector<ClassChoice>& choices, int64_t tp) {
  int64_t cut = 0;
  int64_t whole = 0;
  for (const TensorType& type : ParameterTypes(model)) {
    const bool divides = std::any_of(
        choices.begin(), choices.end(),
        [&](const ClassChoice& choice) { return choice.divides && HasDim(type, choice.name); });
    (divides ? cut : whole) += BytesOf(type);
  }
  return whole + cut * 11 / (10 * tp);
}

absl::StatusOr<ClassLayout> LayOutByClasses(const Graph& model, const ModelDims& dims,
                                            const CompileOptions& options) {
  MGC_ASSIGN_OR_RETURN(const std::vector<ClassChoice> choices, ClassChoices(model, dims, options));
  std::vector<std::string> classes;
  std::string all;
  for (const ClassChoice& choice : choices) {
    if (choice.divides) classes.push_back(choice.name);
    absl::StrAppend(&all, all.empty() ? "" : ", ", choice.name, " of ", choice.size);
  }
  const int64_t tp = options.parallel.tp;
  if (classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tp ", tp, " divides no dim of any parameter; there are: ", all, " [strategy_c5]"));
  }
  const int64_t budget = ParameterBudget(model, choices, tp);
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> best,
                       ClassSearch(model, dims, options, classes, budget).Run());
  ClassLayout layout;
  layout.strategy = ClassStrategy(best);
  MGC_ASSIGN_OR_RETURN(layout.cost, CostOf(model, dims, options, layout.strategy));
  return layout;
}

}  // namespace mgc
