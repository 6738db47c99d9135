// Reference evaluation: what a graph means, on one device or on all ranks of its mesh at once.
//
// All ranks advance in lockstep, node by node: an ordinary op runs on every rank's tiles by its
// OpEval, a collective takes all ranks' operands. A graph before the sharded level is the case of
// one rank. Reductions add in ascending group order. Slow and readable; everything faster is
// compared with it.

#ifndef MGC_GRAPH_EVAL_EVAL_H_
#define MGC_GRAPH_EVAL_EVAL_H_

#include <cstdint>
#include <vector>

#include "graph/eval/models/op_eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/collective.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/types/tile_runs.h"

namespace mgc {

// Per factor of a rule: which elements of the whole dim `rank` holds. Null shardings mean whole.
std::vector<DimPiece> FactorPieces(const FactorRule& rule,
                                   absl::Span<const Sharding* const> operands,
                                   absl::Span<const Sharding* const> results, const Mesh& mesh,
                                   int64_t rank);

// The tile that `rank` holds of a whole tensor.
template <class S>
HostTensor<S> CutTile(const HostTensor<S>& whole, const TensorType& type, const Sharding& sharding,
                      const Mesh& mesh, int64_t rank) {
  auto tile = HostTensor<S>::Make(LocalShape(type, sharding, mesh), whole.is_index);
  ForEachRun(type, sharding, mesh, rank, [&](int64_t at, int64_t from, int64_t count) {
    CopyElements(whole, from, count, &tile, at);
  });
  return tile;
}

template <class M>
class GraphEvaluator {
 public:
  using S = typename M::Scalar;
  using Tensor = HostTensor<S>;

  // `graph` must outlive the evaluator. `seed` keys dropout.
  GraphEvaluator(const Graph& graph, M model, uint64_t seed);

  int64_t num_ranks() const { return graph_.mesh().world_size(); }
  const M& model() const { return model_; }

  // Gives every rank its tile of a whole tensor.
  void Set(ValueId value, const Tensor& whole);
  // Fills with zeros on every rank.
  void SetZero(ValueId value);

  // Runs the nodes of the phases in program order. `first_sample` is the global index of the first
  // sample of the micro-batch.
  void Run(absl::Span<const Phase> phases, int64_t first_sample);
  // Stores assigned outputs whose producer is of one of the phases into their targets.
  void Assign(absl::Span<const Phase> phases);

  // A value put together from the ranks' tiles, owed sums and maxima paid.
  Tensor Whole(ValueId value) const;
  const Tensor& Tile(ValueId value, int64_t rank) const { return tiles_[Index(value)][rank]; }

 private:
  static size_t Index(ValueId value) { return static_cast<size_t>(value); }
  Sharding ShardingOfValue(ValueId value) const;
  void RunLocal(const Node& node, int64_t rank, int64_t first_sample);
  void RunCollective(const Node& node);
  Tensor MakeTile(ValueId value) const;

  const Graph& graph_;
  M model_;
  uint64_t seed_;
  std::vector<std::vector<Tensor>> tiles_;  // [value][rank]
  std::vector<FactorRule> rules_;           // [node]
};

extern template class GraphEvaluator<DoubleModel>;
extern template class GraphEvaluator<ResidueModel>;
extern template class GraphEvaluator<DualModel>;

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_EVAL_H_
