#include "graph/ir/op.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

bool Repeats(const OpDef& op) {
  return !op.operands.empty() && absl::EndsWith(op.operands.back(), "...");
}

absl::Status CheckAttrs(const OpDef& op, const Attrs& attrs) {
  for (const AttrSpec& spec : op.attrs) {
    const AttrValue* value = attrs.Find(spec.name);
    if (value == nullptr && spec.required) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute `", spec.name, "` is missing [", op.name, "_a1]"));
    }
    if (value != nullptr && value->index() != static_cast<size_t>(spec.kind)) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute `", spec.name, "` has the wrong type [", op.name, "_a2]"));
    }
  }
  for (const Attrs::Entry& entry : attrs) {
    const bool known = std::any_of(op.attrs.begin(), op.attrs.end(),
                                   [&](const AttrSpec& spec) { return spec.name == entry.first; });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown attribute `", entry.first, "` [", op.name, "_a3]"));
    }
    const double* real = std::get_if<double>(&entry.second);
    if (real != nullptr && !std::isfinite(*real)) {
      return absl::InvalidArgumentError(absl::StrCat("attribute `", entry.first, "` is ", *real,
                                                     ", no finite number [", op.name, "_a4]"));
    }
  }
  return absl::OkStatus();
}

bool Lists(const std::vector<int>& list, size_t item) {
  return std::find(list.begin(), list.end(), static_cast<int>(item)) != list.end();
}

bool IsScalar(const OpDef& op, const TensorType& type) {
  return type.dtype == DType::kF64 && type.dims.empty() && !op.any_dtype;
}

// The element type that operands share: of the first that is no index, not wide and not quantized,
// a scalar only in the first place; where there is none, of the first that is no index.
DType SharedType(const OpDef& op, absl::Span<const TensorType* const> operands) {
  absl::optional<DType> first;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (Lists(op.index_operands, i) || IsQuantizedOperand(op, i)) continue;
    const bool is_beside = i > 0 && IsScalar(op, *operands[i]);
    if (!IsWideOperand(op, i) && !is_beside) return operands[i]->dtype;
    if (!first.has_value()) first = operands[i]->dtype;
  }
  return first.value_or(DType::kF32);
}

absl::Status CheckDTypes(const OpDef& op, absl::Span<const TensorType* const> operands) {
  const DType shared = SharedType(op, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType dtype = operands[i]->dtype;
    const DType real = IsWideOperand(op, i) ? WideOf(shared) : shared;
    bool fits = dtype == real || IsScalar(op, *operands[i]);
    if (!op.any_dtype) fits &= IsReal(dtype) && dtype != DType::kI8;
    if (Lists(op.index_operands, i)) fits = dtype == DType::kI64;
    if (IsQuantizedOperand(op, i)) fits = dtype == DType::kI8;
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " may not be of ", NameOf(dtype), " [", op.name, "_t1]"));
    }
  }
  return absl::OkStatus();
}

// A dim made of the same factors as one of an operand is that dim; a factor alone brings its name.
Dim DimOf(const DimFactors& factors, const FactorRule& rule, const OpUse& use) {
  Dim made{1, "", 1};
  for (int f : factors) made.size *= rule.factors[f].size;
  if (factors.size() == 1) {
    made.name = rule.factors[factors[0]].dim_name;
    made.multiple = rule.factors[factors[0]].multiple;
    return made;
  }
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    const TensorFactors& tensor = rule.operands[i];
    const auto it = std::find(tensor.begin(), tensor.end(), factors);
    if (it != tensor.end()) return use.operands[i]->dims[it - tensor.begin()];
  }
  return made;
}

// The element type of results that a use asks for.
absl::StatusOr<absl::optional<DType>> AskedType(const OpDef& op, const Attrs& attrs, DType shared) {
  if (attrs.Find(kDTypeAttr) == nullptr) return absl::nullopt;
  DType asked;
  const bool known = ParseDType(attrs.Text(kDTypeAttr), &asked);
  if (known && (asked == shared || asked == WideOf(shared))) return asked;
  return absl::InvalidArgumentError(absl::StrCat("results of operands of ", NameOf(shared),
                                                 " may not be of ", attrs.Text(kDTypeAttr), " [",
                                                 op.name, "_t2]"));
}

absl::Status InferFromRule(const OpDef& op, const OpUse& use, std::vector<TensorType>* results) {
  absl::StatusOr<FactorRule> rule = RuleOf(op, use);
  if (!rule.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(rule.status().message(), " [", op.name, "_c0]"));
  }
  const DType shared = SharedType(op, use.operands);
  MGC_ASSIGN_OR_RETURN(const absl::optional<DType> asked, AskedType(op, use.attrs, shared));
  for (const TensorFactors& factors : rule->results) {
    TensorType type;
    type.dtype = IsWideResult(op, results->size()) ? WideOf(shared) : shared;
    if (asked.has_value()) type.dtype = *asked;
    for (const DimFactors& dim : factors) type.dims.push_back(DimOf(dim, *rule, use));
    results->push_back(std::move(type));
  }
  return absl::OkStatus();
}

}  // namespace

bool OpDef::Has(OpRole role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

const OpDef* FindOp(absl::string_view name) {
  const std::vector<OpDef>& ops = AllOps();
  auto it = std::lower_bound(ops.begin(), ops.end(), name,
                             [](const OpDef& op, absl::string_view n) { return op.name < n; });
  return it != ops.end() && it->name == name ? &*it : nullptr;
}

bool MayTakePlace(const OpDef& op, size_t result, size_t operand) {
  if (op.collective && result != operand) return false;
  return std::any_of(op.in_place.begin(), op.in_place.end(), [&](const InPlace& pair) {
    return op.collective || (static_cast<size_t>(pair.result) == result &&
                             static_cast<size_t>(pair.operand) == operand);
  });
}

int OperandInPlace(const OpDef& op, int result) {
  for (const InPlace& pair : op.in_place) {
    if (pair.result == result) return pair.operand;
  }
  return -1;
}

bool IsWideOperand(const OpDef& op, size_t i) { return Lists(op.wide_operands, i); }
bool IsWideResult(const OpDef& op, size_t i) { return Lists(op.wide_results, i); }
bool IsQuantizedOperand(const OpDef& op, size_t i) { return Lists(op.quantized_operands, i); }

int64_t WorkspaceOf(const OpDef& op, const OpUse& use, KernelHost host) {
  const auto& workspace = host == KernelHost::kGpu ? op.gpu_workspace : op.workspace;
  return workspace ? workspace(use) : 0;
}

bool MayAskForWide(const OpDef& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrSpec& spec) {
    return spec.name == kDTypeAttr && !spec.required;
  });
}

bool StopsGradient(const Node& node) {
  return !node.op->grad && node.op->identity && node.op->identity(node.attrs);
}

absl::StatusOr<FactorRule> RuleOf(const OpDef& op, const OpUse& use) {
  if (op.rule_of) return BindRule(RuleText(op.rule_of(use)), use.operands, use.results);
  return BindRule(op.parsed_rule, use.operands, use.results);
}

FactorRule RuleOf(const Graph& graph, const Node& node) {
  std::vector<const TensorType*> operands;
  std::vector<const TensorType*> results;
  for (ValueId id : node.inputs) operands.push_back(&graph.type(id));
  for (ValueId id : node.outputs) results.push_back(&graph.type(id));
  absl::StatusOr<FactorRule> rule = RuleOf(*node.op, OpUse{node.attrs, operands, results});
  MGC_CHECK(rule.ok()) << node.op->name << ": " << rule.status().ToString();
  return *std::move(rule);
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const OpDef& op, const Attrs& attrs,
                                                   absl::Span<const TensorType* const> operands) {
  const size_t least = Repeats(op) ? op.operands.size() - 1 : op.operands.size();
  if (operands.size() < least || (operands.size() > least && !Repeats(op))) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name, " takes ", Repeats(op) ? "at least " : "", least, " operands, got ",
                     operands.size(), " [", op.name, "_a0]"));
  }
  const OpUse use{attrs, operands, {}};
  std::vector<TensorType> results;
  absl::Status status = CheckAttrs(op, attrs);
  if (status.ok()) status = CheckDTypes(op, operands);
  if (status.ok() && op.check) status = op.check(use);
  if (status.ok()) {
    status = op.infer ? op.infer(use, &results) : InferFromRule(op, use, &results);
  }
  if (!status.ok()) return Annotate(status, op.name);
  std::vector<const TensorType*> made;
  made.reserve(results.size());
  for (const TensorType& type : results) made.push_back(&type);
  if (absl::StatusOr<FactorRule> rule = RuleOf(op, {attrs, operands, made}); !rule.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name, ": ", rule.status().message(), " [", op.name, "_c0]"));
  }
  return results;
}

}  // namespace mgc
