#include "graph/op_case.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/sharding.h"

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

std::vector<int64_t> Strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Copies the valid elements between a tile and the whole tensor.
template <class S>
void CopyValid(const std::vector<DimPiece>& pieces, const HostTensor<S>& from, HostTensor<S>* to,
               bool into_tile) {
  const HostTensor<S>& tile = into_tile ? *to : from;
  const HostTensor<S>& whole = into_tile ? from : *to;
  const std::vector<int64_t> tile_strides = Strides(tile.shape);
  const std::vector<int64_t> whole_strides = Strides(whole.shape);
  for (int64_t i = 0; i < tile.size(); ++i) {
    int64_t place = 0;
    bool valid = true;
    for (size_t d = 0; d < pieces.size(); ++d) {
      const int64_t at = i / tile_strides[d] % tile.shape[d];
      valid &= at < pieces[d].valid;
      place += (pieces[d].begin + at) * whole_strides[d];
    }
    if (!valid) continue;
    const size_t source = static_cast<size_t>(into_tile ? place : i);
    const size_t target = static_cast<size_t>(into_tile ? i : place);
    if (from.is_index) {
      to->index[target] = from.index[source];
    } else {
      to->real[target] = from.real[source];
    }
  }
}

std::vector<int64_t> LogicalShape(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.size);
  return shape;
}

std::vector<DimPiece> PiecesOf(const TensorType& type) {
  std::vector<DimPiece> pieces;
  for (const Dim& dim : type.dims) pieces.push_back(PieceOf(dim, {}, Mesh(), 0));
  return pieces;
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

absl::StatusOr<BoundCase> BindCase(const OpDef& op, size_t number) {
  BoundCase bound;
  bound.op = &op;
  bound.op_case = &op.cases[number];
  bound.name = absl::StrCat(op.name, "_", number);
  MGC_ASSIGN_OR_RETURN(bound.operands, ParseCaseOperands(bound.op_case->operands));
  const std::vector<const TensorType*> types = bound.OperandTypes();
  MGC_ASSIGN_OR_RETURN(bound.results, InferTypes(op, bound.op_case->attrs, types));
  std::vector<const TensorType*> made;
  for (const TensorType& type : bound.results) made.push_back(&type);
  MGC_ASSIGN_OR_RETURN(bound.rule, RuleOf(op, {bound.op_case->attrs, types, made}));
  return bound;
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

std::vector<RealTensor> DrawOperands(const BoundCase& bound, std::mt19937_64& random) {
  std::uniform_real_distribution<double> real(bound.op_case->low, bound.op_case->high);
  std::vector<RealTensor> tensors;
  for (const CaseOperand& operand : bound.operands) {
    RealTensor tensor =
        RealTensor::Make(LogicalShape(operand.type), operand.type.dtype == DType::kI64);
    std::uniform_int_distribution<int64_t> index(0, operand.bound - 1);
    for (double& x : tensor.real) x = real(random);
    for (int64_t& x : tensor.index) x = index(random);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

ResidueTensor DrawResidues(const TensorType& type, std::mt19937_64& random) {
  ResidueTensor tensor = ResidueTensor::Make(LogicalShape(type), type.dtype == DType::kI64);
  std::uniform_int_distribution<uint64_t> residue(0, kResiduePrime - 1);
  for (ResiduePair& x : tensor.real) x = {residue(random), residue(random)};
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

template <class S>
HostTensor<S> TileOf(const HostTensor<S>& whole, const std::vector<DimPiece>& pieces) {
  std::vector<int64_t> shape;
  shape.reserve(pieces.size());
  for (const DimPiece& piece : pieces) shape.push_back(piece.room);
  HostTensor<S> tile = HostTensor<S>::Make(std::move(shape), whole.is_index);
  CopyValid(pieces, whole, &tile, /*into_tile=*/true);
  return tile;
}

template <class M>
std::vector<HostTensor<typename M::Scalar>> EvaluateWhole(
    const M& model, const OpDef& op, const Attrs& attrs, const FactorRule& rule,
    const std::vector<TensorType>& results,
    const std::vector<const HostTensor<typename M::Scalar>*>& operands, uint64_t seed) {
  using Tensor = HostTensor<typename M::Scalar>;
  EvalContext<M> c{model, attrs, rule, {}, seed, {}, {}};
  for (const Factor& factor : rule.factors) {
    c.pieces.push_back(PieceOf({factor.size, "", factor.multiple}, {}, Mesh(), 0));
  }
  std::vector<Tensor> tiles;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::vector<DimPiece> pieces;
    for (size_t d = 0; d < rule.operands[i].size(); ++d) {
      const DimFactors& dim = rule.operands[i][d];
      const int64_t multiple = dim.size() == 1 ? rule.factors[dim[0]].multiple : 1;
      pieces.push_back(PieceOf({operands[i]->shape[d], "", multiple}, {}, Mesh(), 0));
    }
    tiles.push_back(TileOf(*operands[i], pieces));
  }
  std::vector<Tensor> made;
  made.reserve(results.size());
  for (const TensorType& type : results) {
    made.push_back(Tensor::Make(LocalShape(type, Sharding::Whole(type.ndim()), Mesh()),
                                type.dtype == DType::kI64));
  }
  for (const Tensor& tile : tiles) c.inputs.push_back(&tile);
  for (Tensor& tensor : made) c.outputs.push_back(&tensor);
  op.eval(c);
  std::vector<Tensor> wholes;
  for (size_t r = 0; r < results.size(); ++r) {
    wholes.push_back(Tensor::Make(LogicalShape(results[r]), made[r].is_index));
    CopyValid(PiecesOf(results[r]), made[r], &wholes[r], /*into_tile=*/false);
  }
  return wholes;
}

template HostTensor<double> TileOf(const HostTensor<double>&, const std::vector<DimPiece>&);
template HostTensor<ResiduePair> TileOf(const HostTensor<ResiduePair>&,
                                        const std::vector<DimPiece>&);
template std::vector<HostTensor<double>> EvaluateWhole(
    const DoubleModel&, const OpDef&, const Attrs&, const FactorRule&,
    const std::vector<TensorType>&, const std::vector<const HostTensor<double>*>&, uint64_t);
template std::vector<HostTensor<ResiduePair>> EvaluateWhole(
    const ResidueModel&, const OpDef&, const Attrs&, const FactorRule&,
    const std::vector<TensorType>&, const std::vector<const HostTensor<ResiduePair>*>&, uint64_t);
template std::vector<HostTensor<DualPair>> EvaluateWhole(
    const DualModel&, const OpDef&, const Attrs&, const FactorRule&, const std::vector<TensorType>&,
    const std::vector<const HostTensor<DualPair>*>&, uint64_t);

}  // namespace mgc
