#include "graph/verify/shrink/dim_sizes.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kLargestMultiple = 2;
constexpr int64_t kLargestKept = 32;     // of stated sizes that need not shrink
constexpr int64_t kMostUnits = 96;       // of a stated size's unit: two axes of 4 and one of 3
constexpr size_t kMostVariables = 4096;  // no model has a hundred

int64_t SmallMultiple(int64_t multiple) { return std::min(multiple, kLargestMultiple); }

}  // namespace

int DimSizes::Find(const std::string& name, int64_t size) {
  const auto [it, is_new] = keys_.try_emplace(Key{name, size}, static_cast<int>(parents_.size()));
  if (is_new) {
    Variable variable;
    variable.size = size;
    variable.name = name;
    variables_.push_back(std::move(variable));
    parents_.push_back(it->second);
  }
  return Root(it->second);
}

int DimSizes::Root(int variable) const {
  while (parents_[static_cast<size_t>(variable)] != variable) {
    variable = parents_[static_cast<size_t>(variable)];
  }
  return variable;
}

void DimSizes::Unite(int a, int b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  parents_[static_cast<size_t>(b)] = a;
  Variable& kept = variables_[static_cast<size_t>(a)];
  const Variable& gone = variables_[static_cast<size_t>(b)];
  for (const AxisList& axes : gone.cuts) Cut(a, axes);
  kept.multiple = std::max(kept.multiple, gone.multiple);
  kept.counted |= gone.counted;
  kept.stated |= gone.stated;
  if (kept.name.empty()) kept.name = gone.name;
}

void DimSizes::Cut(int variable, const AxisList& axes) {
  std::vector<AxisList>& cuts = variables_[static_cast<size_t>(Root(variable))].cuts;
  if (axes.empty() || std::find(cuts.begin(), cuts.end(), axes) != cuts.end()) return;
  cuts.push_back(axes);
}

void DimSizes::AddTensor(const TensorType& type, const Sharding* sharding) {
  for (size_t d = 0; d < type.dims.size(); ++d) {
    const Dim& dim = type.dims[d];
    const int variable = Find(dim.name, dim.size);
    int64_t& multiple = variables_[static_cast<size_t>(variable)].multiple;
    multiple = std::max(multiple, dim.multiple);
    if (sharding != nullptr) Cut(variable, sharding->dims[d]);
  }
}

void DimSizes::KeepSizes(const TensorType& type) {
  for (const Dim& dim : type.dims) {
    variables_[static_cast<size_t>(Root(Find(dim.name, dim.size)))].counted = true;
  }
}

// A factor that is a dim by itself is that dim's variable; two such dims are one variable.
void DimSizes::TieFactors(const TensorFactors& factors, const TensorType& type,
                          std::vector<int>* variables) {
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d].size() != 1) continue;
    int& variable = (*variables)[static_cast<size_t>(factors[d][0])];
    const int dim = Find(type.dims[d].name, type.dims[d].size);
    if (variable >= 0) Unite(variable, dim);
    variable = Root(dim);
  }
}

void DimSizes::TieProducts(const FactorRule& rule, const TensorFactors& factors,
                           const TensorType& type, std::vector<int>* variables) {
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d].size() < 2 || products_.size() > kMostVariables) continue;
    Product product;
    product.whole = Find(type.dims[d].name, type.dims[d].size);
    for (size_t i = 0; i < factors[d].size(); ++i) {
      const size_t f = static_cast<size_t>(factors[d][i]);
      int& variable = (*variables)[f];
      if (variable < 0) {
        variable = Find(absl::StrCat(type.dims[d].name, ".", i), rule.factors[f].size);
      }
      if (rule.factors[f].size > 1) product.factors.push_back(variable);
    }
    if (product.factors.size() == 1) {  // all there is of the dim
      Unite(product.factors[0], product.whole);
      continue;
    }
    const bool known = std::any_of(products_.begin(), products_.end(), [&](const Product& other) {
      return other.whole == product.whole && other.factors == product.factors;
    });
    if (!known) products_.push_back(std::move(product));
  }
}

void DimSizes::CutFactors(const FactorRule& rule, const TensorFactors& factors,
                          const Sharding* sharding, const std::vector<int>& variables) {
  if (sharding == nullptr) return;
  FactorAxes axes(rule.factors.size());
  for (size_t d = 0; d < factors.size(); ++d) {
    if (factors[d].size() < 2) continue;
    if (!DistributeAxes(factors[d], rule, sharding->dims[d], real_, &axes)) continue;
    for (int f : factors[d]) {
      Cut(variables[static_cast<size_t>(f)], axes[static_cast<size_t>(f)]);
    }
  }
}

void DimSizes::AddUse(const FactorRule& rule, absl::Span<const TensorType* const> operands,
                      absl::Span<const Sharding* const> operand_shardings,
                      absl::Span<const TensorType* const> results,
                      absl::Span<const Sharding* const> result_shardings) {
  std::vector<int> variables(rule.factors.size(), -1);
  std::vector<int> tensors(rule.factors.size(), 0);
  const auto for_each = [&](auto fn) {
    for (size_t i = 0; i < operands.size(); ++i) {
      fn(rule.operands[i], *operands[i], operand_shardings[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      fn(rule.results[i], *results[i], result_shardings[i]);
    }
  };
  for_each([&](const TensorFactors& factors, const TensorType& type, const Sharding*) {
    TieFactors(factors, type, &variables);
    for (const DimFactors& dim : factors) {
      for (int f : dim) ++tensors[static_cast<size_t>(f)];
    }
  });
  std::vector<bool> made(rule.factors.size(), false);
  for (const TensorFactors& factors : rule.results) {
    for (const DimFactors& dim : factors) {
      for (int f : dim) made[static_cast<size_t>(f)] = true;
    }
  }
  for_each([&](const TensorFactors& factors, const TensorType& type, const Sharding* sharding) {
    TieProducts(rule, factors, type, &variables);
    CutFactors(rule, factors, sharding, variables);
  });
  // A whole factor of one tensor alone: an attribute says where it begins and ends. A dim of one
  // element that the results have not (a reshape may leave it out) stays one.
  std::vector<int> stated;
  for (size_t f = 0; f < tensors.size(); ++f) {
    if (tensors[f] != 1 || variables[f] < 0) continue;
    Variable& variable = variables_[static_cast<size_t>(Root(variables[f]))];
    if (rule.factors[f].whole) {
      variable.stated = true;
      stated.push_back(variables[f]);
    } else if (rule.factors[f].size == 1 && !made[f]) {
      variable.counted = true;
    }
  }
  if (!stated.empty() && stated_.size() < kMostVariables) stated_.push_back(std::move(stated));
}

bool DimSizes::Fits(const Variable& variable, int64_t size, bool exactly) const {
  for (const AxisList& axes : variable.cuts) {
    const int64_t pieces = real_.Size(axes);
    const int64_t small_pieces = small_.Size(axes);
    if (exactly && variable.size == pieces && size != small_pieces) return false;
    const bool even = variable.size % (pieces * variable.multiple) == 0;
    const bool small_even = size % (small_pieces * SmallMultiple(variable.multiple)) == 0;
    if (even != small_even) return false;
  }
  return true;
}

// The smallest size that fits and that no other variable has. One that leaves a rest is above the
// number of shards: 5 over 4 gives full, short and empty ones.
absl::Status DimSizes::Choose(Variable* variable, const Wishes& wishes,
                              std::vector<int64_t>* used) const {
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
    const bool is_used = std::find(used->begin(), used->end(), size) != used->end();
    if (second_best == 0) second_best = size;
    if (!is_used) variable->small = size;
  }
  if (variable->small == 0) variable->small = second_best;
  used->push_back(variable->small);
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
  while (UniteLastFactors()) {
  }
  while (true) {
    MGC_RETURN_IF_ERROR(ChooseAll(wishes));
    Variable* contradicted = Contradicted();
    if (contradicted == nullptr) return absl::OkStatus();
    if (contradicted->stated || !wishes.keep_products) {
      return absl::InvalidArgumentError(
          absl::StrCat("dim ", contradicted->name, " of ", contradicted->size,
                       " has factors that allow no smaller size [meaning_v1]"));
    }
    contradicted->stated = true;
  }
}

absl::Status DimSizes::ChooseAll(const Wishes& wishes) {
  for (Variable& variable : variables_) variable.small = 0;
  MGC_RETURN_IF_ERROR(ScaleStated(wishes));
  std::vector<bool> is_product(variables_.size(), false);
  for (const Product& product : products_) {
    is_product[static_cast<size_t>(Root(product.whole))] = true;
  }
  std::vector<int64_t> used;
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

TensorType DimSizes::Small(const TensorType& type) const {
  TensorType small = type;
  for (Dim& dim : small.dims) {
    const auto it = keys_.find(Key{dim.name, dim.size});
    if (it != keys_.end()) {
      const int64_t size = variables_[static_cast<size_t>(Root(it->second))].small;
      if (size > 0) dim.size = size;
    }
    dim.multiple = SmallMultiple(dim.multiple);
  }
  return small;
}

}  // namespace mgc
