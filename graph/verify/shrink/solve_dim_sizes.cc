// DimSizes::Solve: which size each variable gets.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "graph/verify/shrink/dim_sizes.h"

namespace mgc {
namespace {

constexpr int64_t kLargestKept = 32;  // of stated sizes that need not shrink
constexpr int64_t kMostUnits = 96;    // of a stated size's unit: two axes of 4 and one of 3

}  // namespace

bool DimSizes::Fits(const Variable& variable, int64_t size, bool exactly) const {
  for (const AxisList& axes : variable.cuts) {
    const int64_t pieces = real_.Size(axes);
    const int64_t small_pieces = small_.Size(axes);
    if (exactly && variable.size == pieces && size != small_pieces) return false;
    const bool even = variable.size % (pieces * variable.multiple) == 0;
    const bool small_even =
        size % (small_pieces * std::min(variable.multiple, kLargestMultiple)) == 0;
    if (even != small_even) return false;
  }
  return true;
}

// The smallest size that fits and that no other variable has, or none of its real size. One that
// leaves a rest is above the number of shards: 5 over 4 gives full, short and empty ones.
absl::Status DimSizes::Choose(Variable* variable, const Wishes& wishes,
                              std::vector<const Variable*>* used) const {
  constexpr int64_t kLargest = 96;
  const bool even =
      wishes.keep_even && (variable->cuts.empty() || wishes.cut_even) && variable->size % 2 == 0;
  int64_t second_best = 0;
  int64_t smallest = 2;
  for (const AxisList& axes : variable->cuts) {
    if (variable->size % real_.Size(axes) == 0) continue;
    smallest = std::max(smallest, small_.Size(axes) + 1);
  }
  for (int64_t size = smallest; size <= kLargest && variable->small == 0; ++size) {
    if (!Fits(*variable, size, /*exactly=*/true)) continue;
    if (even && size % 2 != 0) continue;
    const bool is_used = std::any_of(used->begin(), used->end(), [&](const Variable* other) {
      return other->small == size && (!wishes.share_sizes || other->size == variable->size);
    });
    if (second_best == 0) second_best = size;
    if (!is_used) variable->small = size;
  }
  if (variable->small == 0) variable->small = second_best;
  used->push_back(variable);
  if (variable->small > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no size up to ", kLargest, " is cut as dim ",
                                                 variable->name, " of ", variable->size,
                                                 " is [meaning_v1]"));
}

// Gives products the sizes of their factors. The first dim that has another size by then, or null.
DimSizes::Variable* DimSizes::Contradicted() {
  const auto at = [&](int variable) -> Variable& {
    return variables_[static_cast<size_t>(Root(variable))];
  };
  for (size_t round = 0; round <= products_.size(); ++round) {
    bool all = true;
    for (const Product& product : products_) {
      int64_t size = 1;
      for (int factor : product.factors) size *= at(factor).small;
      Variable& whole = at(product.whole);
      if (size == 0 || whole.small == 0) {
        all = false;
        whole.small = size;
      } else if (whole.small != size) {
        return &whole;
      }
    }
    if (all) break;
  }
  return nullptr;
}

// Two products of one dim that have all factors but one in common have that one in common too.
// Whether some were not one variable before.
bool DimSizes::UniteLastFactors() {
  std::map<std::vector<int>, int> known;  // whole, factors, the place of the last one
  bool united = false;
  for (const Product& product : products_) {
    for (size_t i = 0; i < product.factors.size(); ++i) {
      std::vector<int> key = {Root(product.whole)};
      for (int factor : product.factors) key.push_back(Root(factor));
      const int last = key[i + 1];
      key[i + 1] = -1;
      const int other = Root(known.try_emplace(std::move(key), last).first->second);
      const auto size = [&](int v) { return variables_[static_cast<size_t>(v)].size; };
      if (other == Root(last) || size(other) != size(last)) continue;
      Unite(other, last);
      united = true;
    }
  }
  return united;
}

// The axes of each factor where these cut the product, at real sizes or small ones; nothing where
// its factors cannot be cut so.
absl::optional<FactorAxes> DimSizes::AxesOf(const Product& product, const AxisList& axes,
                                            bool small) const {
  FactorRule rule;
  DimFactors dim;
  for (int factor : product.factors) {
    const Variable& variable = variables_[static_cast<size_t>(Root(factor))];
    dim.push_back(static_cast<int>(rule.factors.size()));
    rule.factors.emplace_back();
    rule.factors.back().size = small ? variable.small : variable.size;
    rule.factors.back().multiple =
        small ? std::min(variable.multiple, kLargestMultiple) : variable.multiple;
  }
  FactorAxes of_factors(rule.factors.size());
  if (!DistributeAxes(dim, rule, axes, small ? small_ : real_, &of_factors)) return absl::nullopt;
  return of_factors;
}

// Axes that cut a dim in one place cut its factors, the major ones first, and those shrink so that
// the dim can be cut likewise. Whether some were not cut before.
bool DimSizes::CutProducts() {
  bool cut = false;
  for (const Product& product : products_) {
    const std::vector<AxisList> cuts = variables_[static_cast<size_t>(Root(product.whole))].cuts;
    for (const AxisList& axes : cuts) {
      const absl::optional<FactorAxes> of_factors = AxesOf(product, axes, /*small=*/false);
      if (!of_factors.has_value()) continue;
      for (size_t f = 0; f < of_factors->size(); ++f) {
        cut |= Cut(product.factors[f], (*of_factors)[f]);
      }
    }
  }
  return cut;
}

// A product that is not cut at its small size as it is at its real one, or null.
const DimSizes::Variable* DimSizes::Misfit() const {
  for (const Product& product : products_) {
    const Variable& whole = variables_[static_cast<size_t>(Root(product.whole))];
    if (!Fits(whole, whole.small, /*exactly=*/false)) return &whole;
    for (const AxisList& axes : whole.cuts) {
      const absl::optional<FactorAxes> real = AxesOf(product, axes, /*small=*/false);
      if (real.has_value() && AxesOf(product, axes, /*small=*/true) != real) return &whole;
    }
  }
  return nullptr;
}

// By variable, a variable that stands for all whose stated sizes grow together. Of a dim that is
// stated and made of factors, the one that is cut, else the first, grows with it.
std::vector<int> DimSizes::StatedGroups() {
  std::vector<int> groups(variables_.size());
  std::iota(groups.begin(), groups.end(), 0);
  const auto join = [&](int a, int b) {
    const int kept = groups[static_cast<size_t>(Root(a))];
    const int gone = groups[static_cast<size_t>(Root(b))];
    if (kept != gone) std::replace(groups.begin(), groups.end(), gone, kept);
  };
  const auto at = [&](int variable) -> Variable& {
    return variables_[static_cast<size_t>(Root(variable))];
  };
  for (const std::vector<int>& use : stated_) {
    for (int variable : use) join(use[0], variable);
  }
  for (const Product& product : products_) {
    if (!at(product.whole).stated) continue;
    const auto is_cut = [&](int factor) { return !at(factor).cuts.empty(); };
    auto grows = std::find_if(product.factors.begin(), product.factors.end(), is_cut);
    if (grows == product.factors.end()) grows = product.factors.begin();
    for (auto factor = product.factors.begin(); factor != product.factors.end(); ++factor) {
      (factor == grows ? at(*factor).stated : at(*factor).counted) = true;
    }
    join(product.whole, *grows);
  }
  return groups;
}

// The sizes of a group are whole numbers of a unit, their greatest common divisor. Takes the least
// unit under which all are cut as the real ones are, have two elements, and are even where the real
// ones are; or their own, where they are small already and need not shrink.
absl::Status DimSizes::ScaleGroup(const std::vector<int>& members, const Wishes& wishes) {
  int64_t unit = 0;
  int64_t largest = 0;
  bool counted = false;
  for (int member : members) {
    const Variable& variable = variables_[static_cast<size_t>(member)];
    unit = std::gcd(unit, variable.size);
    largest = std::max(largest, variable.size);
    counted |= variable.counted;
  }
  std::vector<int64_t> units;
  const bool small = largest <= kLargestKept && !wishes.shrink_stated;
  if (counted || small) units.push_back(unit);
  for (int64_t n = 1; n <= kMostUnits && !counted; ++n) units.push_back(n);
  for (const bool exactly : {true, false}) {
    for (int64_t made : units) {
      bool fits = true;
      for (int member : members) {
        Variable& variable = variables_[static_cast<size_t>(member)];
        variable.small = variable.size / std::max<int64_t>(unit, 1) * made;
        fits = fits && Fits(variable, variable.small, exactly) &&
               (variable.small >= 2 || variable.size < 2) &&
               (variable.small % 2 == 0 || variable.size % 2 != 0);
      }
      if (fits) return absl::OkStatus();
    }
  }
  const Variable& first = variables_[static_cast<size_t>(members[0])];
  return absl::InvalidArgumentError(absl::StrCat("attributes state the size of dim ", first.name,
                                                 ", ", first.size,
                                                 "; it is cut as it is at no other [meaning_v1]"));
}

absl::Status DimSizes::ScaleStated(const Wishes& wishes) {
  const std::vector<int> groups = StatedGroups();
  std::map<int, std::vector<int>> members;
  for (size_t v = 0; v < variables_.size(); ++v) {
    const bool is_root = Root(static_cast<int>(v)) == static_cast<int>(v);
    if (is_root && variables_[v].stated) members[groups[v]].push_back(static_cast<int>(v));
  }
  for (const auto& [group, of_group] : members) MGC_RETURN_IF_ERROR(ScaleGroup(of_group, wishes));
  return absl::OkStatus();
}

absl::Status DimSizes::Solve(const Wishes& wishes) {
  if (variables_.size() > kMostVariables || products_.size() > kMostVariables) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMostVariables, " different dims [meaning_v1]"));
  }
  while (UniteLastFactors() || CutProducts()) {
  }
  while (true) {
    MGC_RETURN_IF_ERROR(ChooseAll(wishes));
    Variable* contradicted = Contradicted();
    if (contradicted == nullptr) break;
    if (contradicted->stated || !wishes.keep_products) {
      return absl::InvalidArgumentError(
          absl::StrCat("dim ", contradicted->name, " of ", contradicted->size,
                       " has factors that allow no smaller size [meaning_v1]"));
    }
    contradicted->stated = true;
  }
  const Variable* misfit = Misfit();
  if (misfit == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dim ", misfit->name, " of ", misfit->size,
                   " has factors that allow no size at which it is cut as it is [meaning_v1]"));
}

absl::Status DimSizes::ChooseAll(const Wishes& wishes) {
  for (Variable& variable : variables_) variable.small = 0;
  MGC_RETURN_IF_ERROR(ScaleStated(wishes));
  std::vector<bool> is_product(variables_.size(), false);
  for (const Product& product : products_) {
    is_product[static_cast<size_t>(Root(product.whole))] = true;
  }
  std::vector<const Variable*> used;
  std::vector<Variable*> open;
  for (size_t v = 0; v < variables_.size(); ++v) {
    Variable& variable = variables_[v];
    if (Root(static_cast<int>(v)) != static_cast<int>(v)) continue;
    const bool kept = wishes.keep_unnamed && variable.name.empty() && variable.cuts.empty();
    if (variable.stated) continue;
    if (variable.counted || kept || variable.size <= 1) {
      variable.small = variable.size;
    } else if (!is_product[v]) {
      open.push_back(&variable);
    }
  }
  // Those with fewest choices first, then by size.
  const auto strictness = [&](const Variable* variable) {
    int64_t pieces = 1;
    for (const AxisList& axes : variable->cuts) pieces = std::max(pieces, small_.Size(axes));
    return pieces;
  };
  std::stable_sort(open.begin(), open.end(), [&](const Variable* a, const Variable* b) {
    const int64_t left = strictness(a);
    const int64_t right = strictness(b);
    return left != right ? left > right : a->size < b->size;
  });
  for (Variable* variable : open) MGC_RETURN_IF_ERROR(Choose(variable, wishes, &used));
  return absl::OkStatus();
}

}  // namespace mgc
