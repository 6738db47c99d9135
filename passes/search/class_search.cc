#include "passes/search/class_search.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "passes/compile.h"

namespace mgc {
namespace {

using Table = std::vector<size_t>;  // choices by number, in the order of their rows

class ClassSearch {
 public:
  ClassSearch(const std::vector<std::vector<std::string>>& choices, int64_t budget,
              const SearchLimits& limits, ClassCosts costs)
      : choices_(choices), budget_(budget), limits_(limits), costs_(costs) {}

  // From nothing and from everything: the one finds cuts that help by themselves, the other those
  // that help only together.
  absl::StatusOr<FoundClasses> Run() {
    Table all(choices_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    Descend({}, limits_.plans / 2);
    Descend(all, limits_.plans);
    MGC_RETURN_IF_ERROR(failed_);
    if (!best_.has_value()) return refused_;
    return FoundClasses{ClassesOf(best_->table), cut_short_};
  }

 private:
  struct Candidate {
    std::tuple<int64_t, int64_t, size_t> rank;  // bytes above the budget, ns, choices
    Table table;
  };
  // Whether to go on.
  using Visit = absl::FunctionRef<bool(const Table&)>;

  static bool IsBetter(const absl::optional<Candidate>& a, const absl::optional<Candidate>& b) {
    return a.has_value() && (!b.has_value() || a->rank < b->rank);
  }

  std::vector<std::string> ClassesOf(const Table& table) const {
    std::vector<std::string> classes;
    for (const size_t choice : table) {
      classes.insert(classes.end(), choices_[choice].begin(), choices_[choice].end());
    }
    return classes;
  }

  // What is known already costs no plan.
  absl::optional<Candidate> Ranked(const Table& table) {
    if (looked_at_++ == limits_.tables / 2) StopShort();
    if (stopped_) return absl::nullopt;
    const absl::StatusOr<LayoutCost> cost = costs_(ClassesOf(table), most_plans_);
    if (cost.ok()) {
      const int64_t above = std::max<int64_t>(cost->parameter_bytes - budget_, 0);
      return Candidate{{above, cost->step_ns, table.size()}, table};
    }
    if (absl::IsResourceExhausted(cost.status())) {
      StopShort();
    } else if (IsRefusal(cost.status())) {
      refused_.Update(cost.status());
    } else {
      failed_.Update(cost.status());
      stopped_ = true;
    }
    return absl::nullopt;
  }

  void StopShort() { stopped_ = cut_short_ = true; }

  void Descend(const Table& from, size_t most_plans) {
    most_plans_ = most_plans;
    looked_at_ = 0;
    stopped_ = !failed_.ok();
    absl::optional<Candidate> at = Ranked(from);
    Table around = from;
    while (!stopped_) {
      absl::optional<Candidate> next = BestWithOneMoreOrLess(around);
      if (!IsBetter(next, at)) next = FirstWithOneInAPlace(around, at);
      if (!next.has_value()) break;
      at = std::move(next);
      around = at->table;
    }
    if (IsBetter(at, best_)) best_ = std::move(at);
  }

  // Lists of one choice more or less are few, and the best of them is taken; those with another in
  // the place of one are many, and the first that is better is.
  absl::optional<Candidate> BestWithOneMoreOrLess(const Table& from) {
    absl::optional<Candidate> best;
    const auto visit = [&](const Table& table) {
      absl::optional<Candidate> candidate = Ranked(table);
      if (IsBetter(candidate, best)) best = std::move(candidate);
      return !stopped_;
    };
    if (!VisitWithOneMore(from, visit)) return best;
    for (size_t i = 0; i < from.size() && visit(Without(from, i)); ++i) continue;
    return best;
  }

  // One choice in the place of another, or elsewhere in the order.
  absl::optional<Candidate> FirstWithOneInAPlace(const Table& from,
                                                 const absl::optional<Candidate>& than) {
    absl::optional<Candidate> better;
    const auto visit = [&](const Table& table) {
      absl::optional<Candidate> candidate = Ranked(table);
      if (IsBetter(candidate, than)) better = std::move(candidate);
      return !stopped_ && !better.has_value();
    };
    for (size_t i = 0; i < from.size(); ++i) {
      if (!VisitWithOneMore(Without(from, i), visit)) break;
    }
    return better;
  }

  static Table Without(Table table, size_t i) {
    table.erase(table.begin() + static_cast<int64_t>(i));
    return table;
  }

  bool VisitWithOneMore(const Table& from, Visit visit) const {
    for (size_t added = 0; added < choices_.size(); ++added) {
      if (std::find(from.begin(), from.end(), added) != from.end()) continue;
      for (size_t at = 0; at <= from.size(); ++at) {
        Table more = from;
        more.insert(more.begin() + static_cast<int64_t>(at), added);
        if (!visit(more)) return false;
      }
    }
    return true;
  }

  const std::vector<std::vector<std::string>>& choices_;
  const int64_t budget_;
  const SearchLimits limits_;
  const ClassCosts costs_;
  size_t most_plans_ = 0;  // until the descent's end
  size_t looked_at_ = 0;   // in this descent
  bool stopped_ = false;   // this descent
  bool cut_short_ = false;
  absl::Status refused_;  // the first that was
  absl::Status failed_;
  absl::optional<Candidate> best_;
};

}  // namespace

absl::StatusOr<FoundClasses> SearchClasses(const std::vector<std::vector<std::string>>& choices,
                                           int64_t budget, const SearchLimits& limits,
                                           ClassCosts costs) {
  return ClassSearch(choices, budget, limits, costs).Run();
}

}  // namespace mgc
