#include "graph/eval/eval.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "graph/eval/eval_collective.h"

namespace mgc {
std::vector<DimPiece> FactorPieces(const FactorRule& rule,
                                   absl::Span<const Sharding* const> operands,
                                   absl::Span<const Sharding* const> results, const Mesh& mesh,
                                   int64_t rank) {
  const FactorAxes axes = FactorAxesOf(rule, operands, results, mesh);
  std::vector<DimPiece> pieces;
  pieces.reserve(axes.size());
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = rule.factors[f];
    pieces.push_back(PieceOf({factor.size, factor.dim_name, factor.multiple}, axes[f], mesh, rank));
  }
  return pieces;
}

namespace {

std::vector<const Sharding*> ShardingsOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<const Sharding*> shardings;
  shardings.reserve(ids.size());
  for (ValueId id : ids) {
    const Value& value = graph.value(id);
    shardings.push_back(value.sharding ? &*value.sharding : nullptr);
  }
  return shardings;
}

}  // namespace

template <class M>
GraphEvaluator<M>::GraphEvaluator(const Graph& graph, M model, uint64_t seed)
    : graph_(graph), model_(std::move(model)), seed_(seed), tiles_(graph.values().size()) {
  for (const Node& node : graph.nodes()) rules_.push_back(RuleOf(graph, node));
  for (auto& tiles : tiles_) tiles.resize(static_cast<size_t>(num_ranks()));
}

template <class M>
Sharding GraphEvaluator<M>::ShardingOfValue(ValueId value) const {
  const Value& v = graph_.value(value);
  return v.sharding ? *v.sharding : Sharding::Whole(v.type.ndim());
}

template <class M>
typename GraphEvaluator<M>::Tensor GraphEvaluator<M>::MakeTile(ValueId value) const {
  return Tensor::Make(graph_.local_shape(value), graph_.type(value).dtype == DType::kI64,
                      model_.Size(0));
}

template <class M>
void GraphEvaluator<M>::Set(ValueId value, const Tensor& whole) {
  for (int64_t rank = 0; rank < num_ranks(); ++rank) {
    tiles_[Index(value)][rank] =
        CutTile(whole, graph_.type(value), ShardingOfValue(value), graph_.mesh(), rank);
  }
}

template <class M>
void GraphEvaluator<M>::SetZero(ValueId value) {
  for (Tensor& tile : tiles_[Index(value)]) tile = MakeTile(value);
}

template <class M>
void GraphEvaluator<M>::Run(absl::Span<const Phase> phases, int64_t first_sample) {
  for (const Node& node : graph_.nodes()) {
    if (std::find(phases.begin(), phases.end(), node.phase) == phases.end()) continue;
    if (node.op->collective) {
      RunCollective(node);
      continue;
    }
    for (int64_t rank = 0; rank < num_ranks(); ++rank) RunLocal(node, rank, first_sample);
  }
}

template <class M>
void GraphEvaluator<M>::RunLocal(const Node& node, int64_t rank, int64_t first_sample) {
  const FactorRule& rule = rules_[static_cast<size_t>(&node - graph_.nodes().data())];
  EvalContext<M> context{model_, node.attrs, rule, {}, seed_, {}, {}};
  context.pieces = FactorPieces(rule, ShardingsOf(graph_, node.inputs),
                                ShardingsOf(graph_, node.outputs), graph_.mesh(), rank);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].dim_name == kSampleDim) context.pieces[f].begin += first_sample;
  }
  for (ValueId id : node.inputs) context.inputs.push_back(&tiles_[Index(id)][rank]);
  for (ValueId id : node.outputs) {
    tiles_[Index(id)][rank] = MakeTile(id);
    context.outputs.push_back(&tiles_[Index(id)][rank]);
  }
  node.op->eval(context);
}

template <class M>
void GraphEvaluator<M>::RunCollective(const Node& node) {
  const CollectiveUse use{CollectiveOf(graph_, node), graph_.type(node.inputs[0]),
                          graph_.sharding(node.inputs[0]), graph_.sharding(node.outputs[0]),
                          graph_.mesh()};
  const std::vector<Tensor>& from = tiles_[Index(node.inputs[0])];
  for (int64_t rank = 0; rank < num_ranks(); ++rank) {
    tiles_[Index(node.outputs[0])][rank] = CollectiveTile<M>(
        model_, use, rank, [&](int64_t member) -> const Tensor& { return from[member]; });
  }
}

template <class M>
void GraphEvaluator<M>::Assign(absl::Span<const Phase> phases) {
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kAssign) continue;
    const NodeId producer = graph_.value(output.value).producer;
    if (producer == kNone) continue;
    const Phase phase = graph_.node(producer).phase;
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) continue;
    tiles_[Index(output.target)] = tiles_[Index(output.value)];
  }
}

template <class M>
typename GraphEvaluator<M>::Tensor GraphEvaluator<M>::Whole(ValueId value) const {
  const Mesh& mesh = graph_.mesh();
  const TensorType& type = graph_.type(value);
  const Sharding sharding = ShardingOfValue(value);
  Tensor whole = Tensor::Make(SizesOf(type), type.dtype == DType::kI64, model_.Size(0));
  for (int64_t rank = 0; rank < num_ranks(); ++rank) {
    if (!IsFirstReplica(sharding, {}, mesh, rank)) continue;
    const Tensor& tile = tiles_[Index(value)][rank];
    bool lowest_max = true;
    for (AxisId axis : sharding.max) lowest_max &= mesh.Coordinate(rank, axis) == 0;
    ForEachRun(type, sharding, mesh, rank, [&](int64_t at, int64_t to, int64_t count) {
      if (whole.is_index) return CopyElements(tile, at, count, &whole, to);
      for (int64_t i = 0; i < count; ++i) {
        const S& element = tile.real[at + i];
        S& made = whole.real[to + i];
        made = sharding.max.empty() ? model_.Add(made, element)
               : lowest_max         ? element
                                    : model_.Max(made, element);
      }
    });
  }
  return whole;
}

template class GraphEvaluator<DoubleModel>;
template class GraphEvaluator<ResidueModel>;
template class GraphEvaluator<DualModel>;

}  // namespace mgc
