// What a collective leaves on one rank: the reference meaning, shared by the evaluation of graphs
// and of plans.

#ifndef MGC_GRAPH_EVAL_EVAL_COLLECTIVE_H_
#define MGC_GRAPH_EVAL_EVAL_COLLECTIVE_H_

#include <cstdint>
#include <vector>

#include "graph/eval/eval.h"
#include "graph/eval/models/op_eval.h"
#include "graph/ir/collective.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"
#include "graph/types/tile_runs.h"

namespace mgc {

// One operand of a collective.
struct CollectiveUse {
  Collective collective;
  const TensorType& type;
  const Sharding& from;
  const Sharding& to;
  const Mesh& mesh;

  // The storage axes change: tiles are flat ranges.
  bool flat() const { return !(from.storage == to.storage); }
  // Shape of the tensor that the group makes whole.
  std::vector<int64_t> GroupShape() const;
  // Ranks whose operands `rank` sees, ascending.
  std::vector<int64_t> Members(int64_t rank) const;
  // Whether anything of the group's tensor ends on `rank`: a lift leaves it on coordinate 0 only.
  bool Keeps(int64_t rank) const;
  // The tile of a rank, before (`from`) or after, as pieces of the group's tensor.
  std::vector<DimPiece> PiecesInGroup(const Sharding& sharding, int64_t rank) const;
};

// The tensor that the group of `rank` makes whole; `tile_of(member)` is a member's operand. Sums
// are taken in ascending order of ranks. Of the rank only its group counts: the others of the group
// get the same tensor.
template <class M, class TileOf>
HostTensor<typename M::Scalar> GroupTensor(const M& model, const CollectiveUse& use, int64_t rank,
                                           TileOf tile_of) {
  using S = typename M::Scalar;
  const AxisSet axes = use.collective.axes.AsSet();
  const bool maximum = use.collective.kind == CollectiveKind::kAllReduceMax;
  const bool sums = use.from.sum.Intersects(axes);
  const std::vector<int64_t> shape = use.GroupShape();
  HostTensor<S> group = HostTensor<S>::Make(shape, use.type.dtype == DType::kI64, model.Size(0));
  bool first = true;
  for (int64_t member : use.Members(rank)) {
    const HostTensor<S>& tile = tile_of(member);
    const auto add = [&](int64_t at, int64_t to, int64_t count) {
      if (tile.is_index) return CopyElements(tile, at, count, &group, to);
      for (int64_t i = 0; i < count; ++i) {
        S& made = group.real[to + i];
        const S& term = tile.real[at + i];
        made = first || !(maximum || sums) ? term
               : maximum                   ? model.Max(made, term)
                                           : model.Add(made, term);
      }
    };
    ForEachRun(use.PiecesInGroup(use.from, member), shape, add);
    first = false;
  }
  return group;
}

// What the collective leaves on `rank` of its group's tensor.
template <class M>
HostTensor<typename M::Scalar> TileOfGroup(const M& model, const CollectiveUse& use,
                                           const HostTensor<typename M::Scalar>& group,
                                           int64_t rank) {
  HostTensor<typename M::Scalar> out = HostTensor<typename M::Scalar>::Make(
      LocalShape(use.type, use.to, use.mesh), group.is_index, model.Size(0));
  if (!use.Keeps(rank)) return out;
  ForEachRun(
      use.PiecesInGroup(use.to, rank), group.shape,
      [&](int64_t at, int64_t from, int64_t count) { CopyElements(group, from, count, &out, at); });
  return out;
}

// The result on `rank`; `tile_of(member)` is a member's operand.
template <class M, class TileOf>
HostTensor<typename M::Scalar> CollectiveTile(const M& model, const CollectiveUse& use,
                                              int64_t rank, TileOf tile_of) {
  return TileOfGroup(model, use, GroupTensor(model, use, rank, tile_of), rank);
}

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_EVAL_COLLECTIVE_H_
