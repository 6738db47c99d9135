#include "graph/eval/op_case.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/types/sharding.h"

namespace mgc {
namespace {

bool ParseDim(absl::string_view text, Dim* dim) {
  const std::vector<std::string> named = absl::StrSplit(text, '=');
  if (named.size() > 2) return false;
  if (named.size() == 2) dim->name = named[0];
  const std::vector<std::string> sizes = absl::StrSplit(named.back(), '%');
  return sizes.size() <= 2 && absl::SimpleAtoi(sizes[0], &dim->size) && dim->size > 0 &&
         (sizes.size() == 1 || (absl::SimpleAtoi(sizes[1], &dim->multiple) && dim->multiple > 0));
}

// `f32[2,3]` or `i64[4]<3`.
bool ParseOperand(absl::string_view text, CaseOperand* operand) {
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(text, '[');
  if (!ParseDType(halves.first, &operand->type.dtype)) return false;
  const std::pair<absl::string_view, absl::string_view> inner = absl::StrSplit(halves.second, ']');
  for (absl::string_view dim : absl::StrSplit(inner.first, ',', absl::SkipEmpty())) {
    operand->type.dims.emplace_back();
    if (!ParseDim(dim, &operand->type.dims.back())) return false;
  }
  absl::string_view bound = inner.second;
  return bound.empty() ||
         (absl::ConsumePrefix(&bound, "<") && absl::SimpleAtoi(bound, &operand->bound));
}

std::vector<std::string> SplitOutsideBrackets(absl::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  for (char c : text) {
    if (c == ' ') continue;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (parts.empty()) parts.emplace_back();
    parts.back() += c;
  }
  return parts;
}

// Whether operand `i` may be narrower than f32, and is of f32 in the case.
bool IsNarrowable(const OpDef& op, absl::string_view operand, size_t i) {
  return absl::StartsWith(operand, "f32[") && !IsWideOperand(op, i);
}

// Calls fn(op, number) for the cases that have a narrow form.
template <class Fn>
void ForEachNarrowable(const Fn& fn) {
  for (const OpDef& op : AllOps()) {
    const bool is_narrow =
        op.precision == Precision::kFollows || op.precision == Precision::kNarrow;
    if (op.collective || !is_narrow) continue;
    for (size_t n = 0; n < op.cases.size(); ++n) {
      const std::vector<std::string> operands = SplitOutsideBrackets(op.cases[n].operands);
      for (size_t i = 0; i < operands.size(); ++i) {
        if (!IsNarrowable(op, operands[i], i)) continue;
        fn(op, n);
        break;
      }
    }
  }
}

// Whether a case says a result of a narrow type that is not `dtype`: nothing mixes two.
bool AsksForOtherNarrow(const OpCase& op_case, DType dtype) {
  DType asked = dtype;
  ParseDType(op_case.attrs.Text(kDTypeAttr), &asked);
  return IsNarrow(asked) && asked != dtype;
}

// With elements of `dtype`, whose last place is worth `unit` of 1.
OpCase NarrowCaseOf(const OpDef& op, const OpCase& op_case, DType dtype, double unit) {
  OpCase narrow = op_case;
  std::vector<std::string> operands = SplitOutsideBrackets(op_case.operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsNarrowable(op, operands[i], i))
      operands[i] = absl::StrCat(NameOf(dtype), operands[i].substr(3));
  }
  narrow.operands = absl::StrJoin(operands, ", ");
  narrow.tolerance += unit / 2;
  return narrow;
}

// As large ones as i8 has, where the numbers drawn are about 1.
void RoundToWholeNumbers(RealTensor* tensor) {
  for (double& x : tensor->real) x = std::round(std::max(-1.0, std::min(x, 1.0)) * 127);
}

}  // namespace

absl::StatusOr<std::vector<CaseOperand>> ParseCaseOperands(absl::string_view text) {
  std::vector<CaseOperand> operands;
  for (const std::string& part : SplitOutsideBrackets(text)) {
    operands.emplace_back();
    if (!ParseOperand(part, &operands.back())) {
      return absl::InvalidArgumentError(absl::StrCat("cannot read operand `", part, "`"));
    }
  }
  return operands;
}

std::vector<const TensorType*> BoundCase::OperandTypes() const {
  std::vector<const TensorType*> types;
  for (const CaseOperand& operand : operands) types.push_back(&operand.type);
  return types;
}

absl::StatusOr<BoundCase> BindCase(const OpDef& op, const OpCase& op_case, std::string name) {
  BoundCase bound;
  bound.op = &op;
  bound.op_case = &op_case;
  bound.name = std::move(name);
  MGC_ASSIGN_OR_RETURN(bound.operands, ParseCaseOperands(op_case.operands));
  const std::vector<const TensorType*> types = bound.OperandTypes();
  MGC_ASSIGN_OR_RETURN(bound.results, InferTypes(op, op_case.attrs, types));
  std::vector<const TensorType*> made;
  for (const TensorType& type : bound.results) made.push_back(&type);
  MGC_ASSIGN_OR_RETURN(bound.rule, RuleOf(op, {op_case.attrs, types, made}));
  return bound;
}

absl::StatusOr<BoundCase> BindCase(const OpDef& op, size_t number) {
  return BindCase(op, op.cases[number], absl::StrCat(op.name, "_", number));
}

std::vector<BoundCase> AllCases() {
  std::vector<BoundCase> cases;
  for (const OpDef& op : AllOps()) {
    if (op.collective) continue;
    for (size_t i = 0; i < op.cases.size(); ++i) {
      absl::StatusOr<BoundCase> bound = BindCase(op, i);
      MGC_CHECK(bound.ok()) << op.name << " case " << i << ": " << bound.status().ToString();
      cases.push_back(*std::move(bound));
    }
  }
  return cases;
}

std::vector<BoundCase> NarrowCases() {
  std::vector<BoundCase> cases;
  const std::pair<DType, double> types[] = {{DType::kBF16, 0x1p-7}, {DType::kF16, 0x1p-10}};
  ForEachNarrowable([&](const OpDef& op, size_t number) {
    for (const auto& [dtype, unit] : types) {
      if (AsksForOtherNarrow(op.cases[number], dtype)) continue;
      auto narrow = std::make_shared<const OpCase>(NarrowCaseOf(op, op.cases[number], dtype, unit));
      absl::StatusOr<BoundCase> bound =
          BindCase(op, *narrow, absl::StrCat(op.name, "_", number, "_", NameOf(dtype)));
      MGC_CHECK(bound.ok()) << op.name << " case " << number << ": " << bound.status().ToString();
      bound->owned_case = std::move(narrow);
      cases.push_back(*std::move(bound));
    }
  });
  return cases;
}

std::vector<RealTensor> DrawOperands(const BoundCase& bound, std::mt19937_64& random) {
  std::uniform_real_distribution<double> real(bound.op_case->low, bound.op_case->high);
  std::vector<RealTensor> tensors;
  for (const CaseOperand& operand : bound.operands) {
    RealTensor tensor = RealTensor::Make(SizesOf(operand.type), operand.type.dtype == DType::kI64);
    std::uniform_int_distribution<int64_t> index(0, operand.bound - 1);
    for (double& x : tensor.real) x = real(random);
    if (operand.type.dtype == DType::kI8) RoundToWholeNumbers(&tensor);
    for (int64_t& x : tensor.index) x = index(random);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

ResidueTensor DrawResidues(const TensorType& type, std::mt19937_64& random) {
  ResidueTensor tensor = ResidueTensor::Make(SizesOf(type), type.dtype == DType::kI64);
  for (ResiduePair& x : tensor.real) {
    const uint64_t a = FirstField::Reduce(random());
    x = {a, SecondField::Reduce(random())};
  }
  return tensor;
}

std::vector<ResidueTensor> DrawResidues(const BoundCase& bound, std::mt19937_64& random) {
  const std::vector<RealTensor> drawn = DrawOperands(bound, random);
  std::vector<ResidueTensor> tensors;
  for (size_t i = 0; i < drawn.size(); ++i) {
    tensors.push_back(DrawResidues(bound.operands[i].type, random));
    tensors.back().index = drawn[i].index;
  }
  return tensors;
}

}  // namespace mgc
