#include "passes/search/class_layout.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
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

bool HasDim(const TensorType& type, const std::vector<std::string>& names) {
  return std::any_of(type.dims.begin(), type.dims.end(), [&](const Dim& dim) {
    return std::find(names.begin(), names.end(), dim.name) != names.end();
  });
}

// So many plans are compiled for one layout at most: of a model of many classes, each in one layer,
// the best table is the best that was found until then.
constexpr size_t kMostPlans = 1000;

// Of so many classes each is chosen by itself. A model of more repeats something under numbers that
// are no layers' (`h.3.c_attn.w#1`), and what differs by numbers alone is chosen together.
constexpr size_t kMostAlone = 24;

// `h.3.c_attn.w#1` as `h.*.c_attn.w#1`.
std::string WithoutNumbers(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (std::string& part : parts) {
    if (absl::c_all_of(part, absl::ascii_isdigit)) part = "*";
  }
  return absl::StrJoin(parts, ".");
}

// The classes that tp divides, in lists of those that are chosen together.
std::vector<std::vector<std::string>> Choosable(const std::vector<ClassChoice>& choices) {
  std::vector<std::vector<std::string>> lists;
  std::map<std::pair<std::string, int64_t>, size_t> known;
  const bool alone = choices.size() <= kMostAlone;
  for (const ClassChoice& choice : choices) {
    if (!choice.divides) continue;
    const std::string key = alone ? choice.name : WithoutNumbers(choice.name);
    const auto [list, is_new] = known.try_emplace({key, choice.size}, lists.size());
    if (is_new) lists.emplace_back();
    lists[list->second].push_back(choice.name);
  }
  return lists;
}

// Descents by compiled plans. A list of classes that is refused is passed over.
class ClassSearch {
 public:
  // Of every list in `together` all classes are chosen, or none.
  ClassSearch(const std::vector<std::vector<std::string>>& together, int64_t budget,
              LayoutCosts* costs)
      : budget_(budget), costs_(costs) {
    for (const std::vector<std::string>& list : together) {
      classes_.push_back(list.front());
      together_[list.front()] = list;
    }
  }

  // From nothing and from everything: the one finds cuts that help by themselves, the other those
  // that help only together.
  absl::StatusOr<std::vector<std::string>> Run() {
    Descend({});
    Descend(classes_);
    if (!best_.has_value()) return refused_;
    return AllOf(best_->classes);
  }

 private:
  struct Candidate {
    std::tuple<int64_t, int64_t, size_t> rank;  // bytes above the budget, ns, classes
    std::vector<std::string> classes;
  };

  // With those that are chosen with them.
  std::vector<std::string> AllOf(const std::vector<std::string>& classes) const {
    std::vector<std::string> all;
    for (const std::string& name : classes) {
      const std::vector<std::string>& list = together_.at(name);
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }

  absl::optional<Candidate> Ranked(const std::vector<std::string>& classes) {
    if (costs_->compiled() >= kMostPlans) return absl::nullopt;
    const absl::StatusOr<LayoutCost> cost = costs_->Of(AllOf(classes));
    if (!cost.ok()) {
      refused_.Update(cost.status());
      return absl::nullopt;
    }
    const int64_t above = std::max<int64_t>(cost->parameter_bytes - budget_, 0);
    return Candidate{{above, cost->step_ns, classes.size()}, classes};
  }

  static bool IsBetter(const absl::optional<Candidate>& a, const absl::optional<Candidate>& b) {
    return a.has_value() && (!b.has_value() || a->rank < b->rank);
  }

  // Lists of one class more or less are few, and the best of them is taken; those with another in
  // the place of one are many, and the first that is better is.
  void Descend(const std::vector<std::string>& from) {
    absl::optional<Candidate> at = Ranked(from);
    std::vector<std::string> around = from;
    while (true) {
      absl::optional<Candidate> next;
      for (const std::vector<std::string>& classes : WithOneMoreOrLess(around)) {
        absl::optional<Candidate> candidate = Ranked(classes);
        if (IsBetter(candidate, next)) next = std::move(candidate);
      }
      if (!IsBetter(next, at)) next = FirstBetterThan(at, WithOneInAPlace(around));
      if (!next.has_value()) break;
      at = std::move(next);
      around = at->classes;
    }
    if (IsBetter(at, best_)) best_ = std::move(at);
  }

  absl::optional<Candidate> FirstBetterThan(const absl::optional<Candidate>& at,
                                            const std::vector<std::vector<std::string>>& lists) {
    for (const std::vector<std::string>& classes : lists) {
      absl::optional<Candidate> candidate = Ranked(classes);
      if (IsBetter(candidate, at)) return candidate;
    }
    return absl::nullopt;
  }

  std::vector<std::vector<std::string>> WithOneMoreOrLess(
      const std::vector<std::string>& from) const {
    std::vector<std::vector<std::string>> lists;
    AppendWithOneMore(from, &lists);
    for (size_t i = 0; i < from.size(); ++i) lists.push_back(Without(from, i));
    return lists;
  }

  // One class in the place of another, or elsewhere in the order.
  std::vector<std::vector<std::string>> WithOneInAPlace(
      const std::vector<std::string>& from) const {
    std::vector<std::vector<std::string>> lists;
    for (size_t i = 0; i < from.size(); ++i) AppendWithOneMore(Without(from, i), &lists);
    return lists;
  }

  static std::vector<std::string> Without(std::vector<std::string> list, size_t i) {
    list.erase(list.begin() + static_cast<int64_t>(i));
    return list;
  }

  void AppendWithOneMore(const std::vector<std::string>& from,
                         std::vector<std::vector<std::string>>* lists) const {
    for (const std::string& added : classes_) {
      if (std::find(from.begin(), from.end(), added) != from.end()) continue;
      for (size_t at = 0; at <= from.size(); ++at) {
        lists->push_back(from);
        lists->back().insert(lists->back().begin() + static_cast<int64_t>(at), added);
      }
    }
  }

  std::vector<std::string> classes_;  // the first of each list
  std::map<std::string, std::vector<std::string>> together_;
  const int64_t budget_;
  LayoutCosts* const costs_;
  absl::Status refused_;  // the first that was
  absl::optional<Candidate> best_;
};

// The classes that parameters have dims of, without what a cut of each comes to.
std::vector<ClassChoice> ClassesOfParameters(const Graph& model, int64_t tp) {
  const std::vector<TensorType> params = ParameterTypes(model);
  std::vector<ClassChoice> choices;
  const DimClasses classes(model);
  for (const DimClass& c : classes.classes()) {
    const bool known = std::any_of(choices.begin(), choices.end(),
                                   [&](const ClassChoice& other) { return other.name == c.name; });
    if (known || c.name == kSampleDim || c.size == 1) continue;
    ClassChoice choice;
    choice.name = c.name;
    choice.names = NamesInClass(model, classes, c.name);
    choice.size = c.size;
    choice.divides = c.size % tp == 0;
    for (const TensorType& type : params) {
      if (HasDim(type, choice.names)) choice.parameter_bytes += BytesOf(type);
    }
    if (choice.parameter_bytes > 0) choices.push_back(std::move(choice));
  }
  return choices;
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
    MGC_ASSIGN_OR_RETURN(choice.alone, costs.Of({choice.name}));
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
                                            const CompileOptions& options) {
  const int64_t tp = options.parallel.tp;
  const std::vector<ClassChoice> choices = ClassesOfParameters(model, tp);
  const std::vector<std::vector<std::string>> together = Choosable(choices);
  std::string all;
  for (const ClassChoice& choice : choices) {
    absl::StrAppend(&all, all.empty() ? "" : ", ", choice.name, " of ", choice.size);
  }
  if (together.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tp ", tp, " divides no dim of any parameter; there are: ", all, " [strategy_c5]"));
  }
  LayoutCosts costs(model, dims, options);
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> best,
                       ClassSearch(together, ParameterBudget(model, choices, tp), &costs).Run());
  ClassLayout layout;
  layout.strategy = costs.StrategyOf(best);
  MGC_ASSIGN_OR_RETURN(layout.cost, costs.Of(best));
  return layout;
}

}  // namespace mgc
