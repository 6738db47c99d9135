#include "passes/search/class_layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/types/sharding.h"
#include "passes/config/nearest_legal.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/shard/strategy.h"
#include "passes/search/home_rows.h"

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

bool HasDim(const TensorType& type, const std::vector<std::string>& names) {
  return std::any_of(type.dims.begin(), type.dims.end(), [&](const Dim& dim) {
    return std::find(names.begin(), names.end(), dim.name) != names.end();
  });
}

// Of so many classes each is chosen by itself. A model of more repeats something under numbers that
// are no layers' (`h.3.c_attn.w#1`), and what differs by numbers alone is chosen together.
constexpr size_t kMostAlone = 24;

// The largest tp that a hint proposes; keeps the search for one short.
constexpr int64_t kMaxHint = 1 << 14;

// `block_3.w12#1` as `block_*.w*#1`: which dim of a value it is, stays.
std::string WithoutNumbers(absl::string_view name) {
  const size_t dim = name.rfind('#');
  std::string folded;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool number = i < dim && absl::ascii_isdigit(static_cast<unsigned char>(name[i]));
    if (!number) {
      folded += name[i];
    } else if (folded.empty() || folded.back() != '*') {
      folded += '*';
    }
  }
  return folded;
}

// The classes that tp divides, in lists of those that are chosen together.
std::vector<std::vector<std::string>> Choosable(const std::vector<ClassChoice>& choices) {
  std::vector<std::vector<std::string>> lists;
  std::map<std::pair<std::string, std::set<int64_t>>, size_t> known;
  const bool alone = choices.size() <= kMostAlone;
  for (const ClassChoice& choice : choices) {
    if (!choice.divides) continue;
    const std::string key = alone ? choice.name : WithoutNumbers(choice.name);
    const auto [list, is_new] = known.try_emplace({key, choice.sizes}, lists.size());
    if (is_new) lists.emplace_back();
    lists[list->second].push_back(choice.name);
  }
  return lists;
}

bool DividesAll(int64_t tp, const std::set<int64_t>& sizes) {
  return absl::c_all_of(sizes, [tp](int64_t size) { return size % tp == 0; });
}

// The classes that parameters have dims of, without what a cut of each comes to.
std::vector<ClassChoice> ClassesOfParameters(const Graph& model, int64_t tp) {
  std::vector<ClassChoice> choices;
  const DimClasses classes(model);
  const auto names = NamesByClass(model, classes);
  std::set<absl::string_view> known;
  for (const DimClass& c : classes.classes()) {
    if (c.name == kSampleDim || !known.insert(c.name).second) continue;
    ClassChoice choice;
    choice.name = c.name;
    choice.names = names.at(c.name);
    for (const GraphInput& input : model.inputs()) {
      const TensorType& type = model.type(input.value);
      if (!HasDim(type, choice.names)) continue;
      if (input.kind == InputKind::kParam) choice.parameter_bytes += BytesOf(type);
      for (const Dim& dim : type.dims) {
        if (absl::c_linear_search(choice.names, dim.name)) choice.sizes.insert(dim.size);
      }
    }
    choice.divides = DividesAll(tp, choice.sizes);
    const bool can_be_cut = choice.sizes != std::set<int64_t>{1};
    if (choice.parameter_bytes > 0 && can_be_cut) choices.push_back(std::move(choice));
  }
  return choices;
}

// [strategy_c5]
absl::Status DividesNothing(int64_t tp, const std::vector<ClassChoice>& choices) {
  std::vector<std::string> classes;
  int64_t largest = 1;
  for (const ClassChoice& choice : choices) {
    classes.push_back(absl::StrCat(choice.name, " of ", absl::StrJoin(choice.sizes, " and ")));
    largest = std::max(largest, *choice.sizes.rbegin());
  }
  const std::string all = classes.empty() ? "none of several" : absl::StrJoin(classes, ", ");
  const std::string legal = NearestLegal(tp, std::min(largest, kMaxHint), [&](int64_t other) {
    return other == 1 || absl::c_any_of(choices, [other](const ClassChoice& choice) {
             return DividesAll(other, choice.sizes);
           });
  });
  const Diagnostic nothing = {
      "strategy_c5", absl::StrCat("tp ", tp, " divides no dim of any parameter; there are: ", all),
      absl::StrCat("tp ", legal, ", or --allow-replicated")};
  return absl::InvalidArgumentError(ToString(nothing));
}

}  // namespace

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

absl::StatusOr<std::vector<ClassChoice>> ClassChoices(const Graph& model, const ModelDims& dims,
                                                      const CompileOptions& options) {
  std::vector<ClassChoice> choices = ClassesOfParameters(model, options.parallel.tp);
  LayoutCosts costs(model, dims, options);
  for (ClassChoice& choice : choices) {
    if (!choice.divides) continue;
    const absl::StatusOr<LayoutCost> cost = costs.Of({choice.name});
    if (!cost.ok() && !IsRefusal(cost.status())) return cost.status();
    choice.refused = cost.status();
    if (cost.ok()) choice.alone = *cost;
  }
  return choices;
}

int64_t ParameterBudget(const Graph& model, const std::vector<ClassChoice>& choices, int64_t tp) {
  int64_t cut = 0;
  int64_t whole = 0;
  for (const TensorType& type : ParameterTypes(model)) {
    const bool divides = std::any_of(
        choices.begin(), choices.end(),
        [&](const ClassChoice& choice) { return choice.divides && HasDim(type, choice.names); });
    (divides ? cut : whole) += BytesOf(type);
  }
  return whole + cut * 11 / (10 * tp);
}

absl::StatusOr<ClassLayout> LayOutByClasses(const Graph& model, const ModelDims& dims,
                                            const CompileOptions& options,
                                            const SearchLimits& limits) {
  const int64_t tp = options.parallel.tp;
  const std::vector<ClassChoice> choices = ClassesOfParameters(model, tp);
  const std::vector<std::vector<std::string>> together = Choosable(choices);
  if (together.empty() && !options.parallel.allow_replicated) return DividesNothing(tp, choices);
  ClassLayout layout;
  layout.budget = ParameterBudget(model, choices, tp);
  LayoutCosts costs(model, dims, options);
  const auto cost_of = [&costs](const std::vector<std::string>& classes, size_t most_plans) {
    return costs.Of(classes, most_plans);
  };
  MGC_ASSIGN_OR_RETURN(const FoundClasses found,
                       SearchClasses(together, layout.budget, limits, cost_of));
  MGC_ASSIGN_OR_RETURN(const LayoutCost cost, costs.Of(found.classes));
  const size_t left = limits.plans - std::min(limits.plans, costs.compiled());
  MGC_ASSIGN_OR_RETURN(HomeRows homes, AddHomeRows(model, dims, options,
                                                   costs.StrategyOf(found.classes), cost, left));
  layout.strategy = std::move(homes.strategy);
  layout.cost = homes.cost;
  layout.plans = costs.compiled() + homes.plans;
  layout.cut_short = found.cut_short;
  return layout;
}

}  // namespace mgc
