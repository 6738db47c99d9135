#include "graph/types/factor_rule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/types/even_cut.h"

namespace mgc {
namespace {

constexpr absl::string_view kEllipsis = "...";

RuleText::Name ReadName(absl::string_view token) {
  RuleText::Name name;
  while (!token.empty() && (token.back() == '!' || token.back() == '^')) {
    (token.back() == '!' ? name.whole : name.maximum) = true;
    token.remove_suffix(1);
  }
  name.name = std::string(token);
  return name;
}

RuleText::Tensor ReadTensor(absl::string_view text) {
  RuleText::Tensor tensor;
  tensor.text = std::string(text);
  bool in_group = false;
  for (absl::string_view token : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool opens = absl::ConsumePrefix(&token, "(");
    const bool closes = absl::ConsumeSuffix(&token, ")");
    if (!in_group) tensor.dims.emplace_back();
    if (opens) in_group = true;
    tensor.dims.back().push_back(ReadName(token));
    if (closes) in_group = false;
  }
  for (size_t d = 0; d < tensor.dims.size() && tensor.run < 0; ++d) {
    const std::vector<RuleText::Name>& dim = tensor.dims[d];
    if (dim.size() == 1 && dim[0].name == kEllipsis) tensor.run = static_cast<int>(d);
  }
  return tensor;
}

class Binder {
  using Group = std::pair<DimFactors, int64_t>;  // factors of a dim and the dim's size

 public:
  FactorRule rule;

  absl::Status Bind(const RuleText::Tensor& tensor, const TensorType* type, TensorFactors* out) {
    MGC_RETURN_IF_ERROR(CheckNumberOfDims(tensor, type));
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      const std::vector<RuleText::Name>& names = tensor.dims[d];
      if (static_cast<int>(d) != tensor.run) {
        DimFactors factors;
        for (const RuleText::Name& name : names) factors.push_back(Intern(name));
        out->push_back(std::move(factors));
        continue;
      }
      for (int i = 0; i < ellipsis_; ++i) {
        out->push_back({Intern({absl::StrCat(".", i), names[0].whole, names[0].maximum})});
      }
    }
    for (size_t d = 0; type != nullptr && d < out->size(); ++d) {
      MGC_RETURN_IF_ERROR(BindDim(type->dims[d], (*out)[d]));
    }
    return absl::OkStatus();
  }

  // Sizes of factors that occur only in groups follow by division once all others of a group are
  // known; one group's answer may be what the next one waits for.
  absl::Status ResolveGroups() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (const Group& group : groups_) progress |= ResolveOne(group);
    }
    for (const auto& [factors, size] : groups_) {
      int64_t product = 1;
      for (int f : factors) product *= rule.factors[f].size;
      if (product != size) {
        return absl::InvalidArgumentError(
            absl::StrCat("a dim of ", size, " is not made of ", GroupText(factors)));
      }
    }
    return absl::OkStatus();
  }

 private:
  // Sets what `...` stands for, if it is open.
  absl::Status CheckNumberOfDims(const RuleText::Tensor& tensor, const TensorType* type) {
    const int written = static_cast<int>(tensor.dims.size());
    if (tensor.run < 0) {
      if (type == nullptr || type->ndim() == written) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("expected ", written, " dims (", tensor.text, "), got ", type->ndim()));
    }
    const int run = type != nullptr ? type->ndim() - written + 1 : ellipsis_;
    if (run < 0 || (ellipsis_ >= 0 && run != ellipsis_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the dims behind `...` of (", tensor.text, ") differ between operands"));
    }
    ellipsis_ = run;
    return absl::OkStatus();
  }

  int Intern(const RuleText::Name& name) {
    int index = rule.Find(name.name);
    if (index < 0) {
      index = static_cast<int>(rule.factors.size());
      rule.factors.emplace_back();
      rule.factors.back().name = name.name;
    }
    rule.factors[index].whole |= name.whole;
    rule.factors[index].maximum |= name.maximum;
    return index;
  }

  absl::Status BindDim(const Dim& dim, const DimFactors& factors) {
    if (factors.size() != 1) {
      groups_.emplace_back(factors, dim.size);
      return absl::OkStatus();
    }
    Factor& factor = rule.factors[factors[0]];
    if (factor.size >= 0 && factor.size != dim.size) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes differ along ", factor.name, ": ", factor.size, " and ", dim.size));
    }
    if (factor.size >= 0 && factor.multiple != dim.multiple) {
      return absl::InvalidArgumentError(absl::StrCat("room along ", factor.name,
                                                     " is rounded up to multiples of ",
                                                     factor.multiple, " and of ", dim.multiple));
    }
    factor.size = dim.size;
    factor.multiple = dim.multiple;
    if (factor.dim_name.empty()) factor.dim_name = dim.name;
    return absl::OkStatus();
  }

  // Sets the only factor of the group whose size is open, if its size follows; true if it did.
  bool ResolveOne(const Group& group) {
    int64_t known = 1;
    int open = -1;
    for (int f : group.first) {
      if (rule.factors[f].size >= 0) {
        known *= rule.factors[f].size;
      } else if (open >= 0) {
        return false;
      } else {
        open = f;
      }
    }
    if (open < 0 || known == 0 || group.second % known != 0) return false;
    rule.factors[open].size = group.second / known;
    return true;
  }

  std::string GroupText(const DimFactors& factors) const {
    std::string text;
    for (int f : factors) {
      const Factor& factor = rule.factors[f];
      absl::StrAppend(&text, text.empty() ? "" : " times ", factor.name);
      if (factor.size >= 0) absl::StrAppend(&text, " = ", factor.size);
    }
    return text;
  }

  int ellipsis_ = -1;
  std::vector<Group> groups_;
};

absl::Status BindSide(const std::vector<RuleText::Tensor>& side, absl::string_view what,
                      absl::Span<const TensorType* const> types, bool allow_untyped, Binder* binder,
                      std::vector<TensorFactors>* out) {
  const bool untyped = allow_untyped && types.empty();
  if (types.empty() && !untyped && side.size() == 1 && side[0].dims.empty()) {
    return absl::OkStatus();
  }
  const bool serves_all = side.size() == 1 && types.size() > 1;
  if (side.size() != types.size() && !serves_all && !untyped) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", side.size(), " ", what, ", got ", types.size()));
  }
  const size_t tensors = untyped ? side.size() : types.size();
  for (size_t i = 0; i < tensors; ++i) {
    out->emplace_back();
    const TensorType* type = untyped ? nullptr : types[i];
    if (absl::Status status = binder->Bind(side[serves_all ? 0 : i], type, &out->back());
        !status.ok()) {
      return Annotate(status, absl::StrCat(what, " ", i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int FactorRule::Find(absl::string_view name) const {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool FactorRule::InResult(int factor, int r) const {
  for (const DimFactors& dim : results[r]) {
    if (std::find(dim.begin(), dim.end(), factor) != dim.end()) return true;
  }
  return false;
}

RuleText::RuleText(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(text, "->");
  for (absl::string_view tensor : absl::StrSplit(sides.first, ',')) {
    operands_.push_back(ReadTensor(tensor));
  }
  for (absl::string_view tensor : absl::StrSplit(sides.second, ',')) {
    results_.push_back(ReadTensor(tensor));
  }
}

absl::StatusOr<FactorRule> BindRule(const RuleText& rule,
                                    absl::Span<const TensorType* const> operands,
                                    absl::Span<const TensorType* const> results) {
  Binder binder;
  MGC_RETURN_IF_ERROR(BindSide(rule.operands(), "operand", operands, /*allow_untyped=*/false,
                               &binder, &binder.rule.operands));
  MGC_RETURN_IF_ERROR(BindSide(rule.results(), "result", results, /*allow_untyped=*/true, &binder,
                               &binder.rule.results));
  MGC_RETURN_IF_ERROR(binder.ResolveGroups());
  return std::move(binder.rule);
}

bool DistributeAxes(const DimFactors& dim, const FactorRule& rule, const AxisList& axes,
                    const Mesh& mesh, FactorAxes* out) {
  size_t at = 0;
  for (AxisId axis : axes) {
    while (at < dim.size()) {
      const Factor& factor = rule.factors[dim[at]];
      AxisList with = (*out)[dim[at]];
      with.push_back(axis);
      const bool fits =
          dim.size() == 1 || CutsEvenly({factor.size, "", factor.multiple}, with, mesh);
      if (fits && factor.size > 1) break;
      const bool exhausted = LocalSize({factor.size, ""}, (*out)[dim[at]], mesh) == 1;
      if (!exhausted) return false;
      ++at;
    }
    if (at == dim.size()) return false;
    (*out)[dim[at]].push_back(axis);
  }
  return true;
}

FactorAxes FactorAxesOf(const FactorRule& rule, absl::Span<const Sharding* const> operands,
                        absl::Span<const Sharding* const> results, const Mesh& mesh) {
  FactorAxes axes(rule.factors.size());
  const auto collect = [&](const Sharding* sharding, const TensorFactors& factors) {
    if (sharding == nullptr || !sharding->storage.empty()) return;
    for (size_t d = 0; d < factors.size(); ++d) {
      FactorAxes found(rule.factors.size());
      DistributeAxes(factors[d], rule, sharding->dims[d], mesh, &found);
      for (int f : factors[d]) {
        if (axes[f].empty()) axes[f] = found[f];
      }
    }
  };
  for (size_t i = 0; i < operands.size(); ++i) collect(operands[i], rule.operands[i]);
  for (size_t r = 0; r < results.size(); ++r) collect(results[r], rule.results[r]);
  return axes;
}

bool Representable(const FactorRule& rule, const FactorAxes& axes, const Mesh& mesh) {
  const auto fits = [&](const DimFactors& dim) {
    if (dim.size() == 1) return true;
    bool major_is_one = true;
    for (int f : dim) {
      const Dim factor{rule.factors[f].size, "", rule.factors[f].multiple};
      if (!axes[f].empty() && !(major_is_one && CutsEvenly(factor, axes[f], mesh))) return false;
      major_is_one &= LocalSize(factor, axes[f], mesh) == 1;
    }
    return true;
  };
  for (const std::vector<TensorFactors>* side : {&rule.operands, &rule.results}) {
    for (const TensorFactors& tensor : *side) {
      if (!std::all_of(tensor.begin(), tensor.end(), fits)) return false;
    }
  }
  return true;
}

Sharding ShardingOf(const TensorFactors& factors, const FactorAxes& axes) {
  Sharding sharding = Sharding::Whole(static_cast<int>(factors.size()));
  for (size_t i = 0; i < factors.size(); ++i) {
    for (int f : factors[i]) sharding.dims[i].Append(axes[f]);
  }
  return sharding;
}

Sharding ResultSharding(const FactorRule& rule, const FactorAxes& axes, int r) {
  Sharding sharding = ShardingOf(rule.results[r], axes);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (axes[f].empty() || rule.InResult(static_cast<int>(f), r)) continue;
    (rule.factors[f].maximum ? sharding.max : sharding.sum) |= axes[f].AsSet();
  }
  return sharding;
}

}  // namespace mgc
