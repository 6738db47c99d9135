#include "graph/verify/shrink/dim_sizes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mgc {

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

bool DimSizes::Cut(int variable, const AxisList& axes) {
  std::vector<AxisList>& cuts = variables_[static_cast<size_t>(Root(variable))].cuts;
  if (axes.empty() || std::find(cuts.begin(), cuts.end(), axes) != cuts.end()) return false;
  cuts.push_back(axes);
  return true;
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

std::vector<int64_t> DimSizes::Chosen() const {
  std::vector<int64_t> chosen;
  chosen.reserve(variables_.size());
  for (const Variable& variable : variables_) chosen.push_back(variable.small);
  return chosen;
}

TensorType DimSizes::Small(const TensorType& type) const {
  TensorType small = type;
  for (Dim& dim : small.dims) {
    const auto it = keys_.find(Key{dim.name, dim.size});
    if (it != keys_.end()) {
      const int64_t size = variables_[static_cast<size_t>(Root(it->second))].small;
      if (size > 0) dim.size = size;
    }
    dim.multiple = std::min(dim.multiple, kLargestMultiple);
  }
  return small;
}

}  // namespace mgc
