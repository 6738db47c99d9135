#include "graph/ops/op_helpers.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mgc {

absl::Status Refuse(absl::string_view op, int number, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(text, " [", op, "_c", number, "]"));
}

std::string DimFactorNames(int begin, int end) {
  std::string text;
  for (int i = begin; i < end; ++i) absl::StrAppend(&text, text.empty() ? "d" : " d", i);
  return text;
}

std::string TrailingRule(const OpUse& use) {
  const int full = use.operands[0]->ndim();
  std::string text;
  for (size_t i = 0; i < use.operands.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    DimFactorNames(full - use.operands[i]->ndim(), full));
  }
  return absl::StrCat(text, " -> ", DimFactorNames(0, full));
}

double BytesOf(const TensorType& type) {
  double bytes = static_cast<double>(SizeOf(type.dtype));
  for (const Dim& dim : type.dims) bytes *= static_cast<double>(dim.size);
  return bytes;
}

absl::Status CheckTrailing(absl::string_view op, const OpUse& use) {
  for (const TensorType* operand : use.operands) {
    if (operand->ndim() > use.operands[0]->ndim()) {
      return Refuse(
          op, 1,
          absl::StrCat("operand 0, ", use.operands[0]->ToString(),
                       ", must have the full shape, but another is ", operand->ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDimList(absl::string_view op, int number, absl::Span<const int64_t> dims,
                          int ndim) {
  int64_t previous = -1;
  for (int64_t dim : dims) {
    if (dim <= previous || dim >= ndim) {
      return Refuse(op, number, absl::StrCat("dims must ascend within [0, ", ndim, "), got ", dim));
    }
    previous = dim;
  }
  return absl::OkStatus();
}

OpDef OfEachIndex(absl::string_view operand, absl::string_view result) {
  OpDef op;
  op.operands = {std::string(operand)};
  op.results = {std::string(result)};
  op.index_operands = {0};
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back({DType::kF32, use.operands[0]->dims});
    return absl::OkStatus();
  };
  op.rule = "... -> ...";
  op.no_grad = "depends on indices alone";
  op.flops_per_point = 0;
  return op;
}

ValueId AsTypeOf(GradContext& c, ValueId value, ValueId like) {
  const DType dtype = c.type(like).dtype;
  if (c.type(value).dtype == dtype) return value;
  return c.Emit("cast", {value}, {{kDTypeAttr, std::string(NameOf(dtype))}});
}

ValueId Scaled(GradContext& c, ValueId value, double factor) {
  return c.Emit("scale", {value}, {{"value", factor}});
}

ValueId SumToTrailing(GradContext& c, ValueId full, int ndim) {
  std::vector<int64_t> leading(std::max(0, c.type(full).ndim() - ndim));
  std::iota(leading.begin(), leading.end(), 0);
  return leading.empty() ? full : c.Emit("reduce_sum", {full}, {{"dims", leading}});
}

Attrs BroadcastAttrs(const TensorType& whole, absl::Span<const int64_t> dims) {
  std::vector<Dim> made;
  std::vector<int64_t> sizes;
  std::vector<int64_t> multiples;
  bool padded = false;
  for (int64_t dim : dims) {
    made.push_back(whole.dims[static_cast<size_t>(dim)]);
    sizes.push_back(made.back().size);
    multiples.push_back(made.back().multiple);
    padded |= made.back().multiple != 1;
  }
  Attrs attrs{{"dims", std::vector<int64_t>(dims.begin(), dims.end())},
              {"sizes", sizes},
              {"names", JoinDimNames(made)}};
  if (padded) attrs.Set("multiples", multiples);
  return attrs;
}

std::string JoinDimNames(absl::Span<const Dim> dims) {
  std::string text;
  for (const Dim& dim : dims) {
    absl::StrAppend(&text, text.empty() ? "" : " ", dim.name.empty() ? "_" : dim.name);
  }
  return text;
}

std::vector<std::string> SplitDimNames(absl::string_view names) {
  std::vector<std::string> split = absl::StrSplit(names, ' ', absl::SkipEmpty());
  for (std::string& name : split) {
    if (name == "_") name.clear();
  }
  return split;
}

Walk::Walk(std::vector<int64_t> extents, std::vector<std::vector<int64_t>> strides)
    : extents_(std::move(extents)),
      strides_(std::move(strides)),
      index_(extents_.size(), 0),
      offsets_(strides_.size(), 0),
      done_(NumElements(extents_) == 0) {}

void Walk::Next() {
  for (size_t d = extents_.size(); d-- > 0;) {
    const bool wraps = ++index_[d] == extents_[d];
    const int64_t steps = wraps ? 1 - extents_[d] : 1;
    for (size_t list = 0; list < strides_.size(); ++list) {
      offsets_[list] += steps * strides_[list][d];
    }
    if (!wraps) return;
    index_[d] = 0;
  }
  done_ = true;
}

}  // namespace mgc
