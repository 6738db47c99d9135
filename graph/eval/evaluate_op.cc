#include "graph/eval/evaluate_op.h"

#include "graph/types/tile_runs.h"

namespace mgc {

std::vector<DimPiece> WholePieces(const FactorRule& rule, int64_t first_sample) {
  std::vector<DimPiece> pieces;
  pieces.reserve(rule.factors.size());
  for (const Factor& factor : rule.factors) {
    pieces.push_back(PieceOf({factor.size, "", factor.multiple}, {}, Mesh(), 0));
    if (factor.dim_name == kSampleDim) pieces.back().begin = first_sample;
  }
  return pieces;
}

template <class S>
HostTensor<S> TileOf(const HostTensor<S>& whole, const std::vector<DimPiece>& pieces) {
  std::vector<int64_t> shape;
  shape.reserve(pieces.size());
  for (const DimPiece& piece : pieces) shape.push_back(piece.room);
  HostTensor<S> tile = HostTensor<S>::Make(std::move(shape), whole.is_index);
  ForEachRun(pieces, whole.shape, [&](int64_t at, int64_t from, int64_t count) {
    CopyElements(whole, from, count, &tile, at);
  });
  return tile;
}

template <class M>
std::vector<HostTensor<typename M::Scalar>> EvaluateWhole(
    const M& model, const OpDef& op, const Attrs& attrs, const FactorRule& rule,
    const std::vector<TensorType>& results,
    const std::vector<const HostTensor<typename M::Scalar>*>& operands, uint64_t seed) {
  using Tensor = HostTensor<typename M::Scalar>;
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
  std::vector<const Tensor*> inputs;
  inputs.reserve(tiles.size());
  for (const Tensor& tile : tiles) inputs.push_back(&tile);
  std::vector<Tensor> made;
  made.reserve(results.size());
  for (const TensorType& type : results) {
    made.push_back(Tensor::Make(LocalShape(type, Sharding::Whole(type.ndim()), Mesh()),
                                type.dtype == DType::kI64));
  }
  EvaluateOp(model, op, attrs, rule, WholePieces(rule), seed, std::move(inputs), &made);
  std::vector<Tensor> wholes;
  for (size_t r = 0; r < results.size(); ++r) {
    const TensorType& type = results[r];
    wholes.push_back(Tensor::Make(SizesOf(type), made[r].is_index));
    ForEachRun(type, Sharding::Whole(type.ndim()), Mesh(), 0,
               [&](int64_t at, int64_t to, int64_t count) {
                 CopyElements(made[r], at, count, &wholes[r], to);
               });
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
