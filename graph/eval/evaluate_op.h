// One op evaluated by its reference meaning, without a graph around it.

#ifndef MGC_GRAPH_EVAL_EVALUATE_OP_H_
#define MGC_GRAPH_EVAL_EVALUATE_OP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/eval/models/op_eval.h"
#include "graph/ir/op.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// The pieces of a rule's factors on one device: all of each, with the room for its padding. The
// batch begins at `first_sample`.
std::vector<DimPiece> WholePieces(const FactorRule& rule, int64_t first_sample = 0);

// Evaluates an op on the tiles of one rank. `outputs` have their shape and are zero.
template <class M>
void EvaluateOp(const M& model, const OpDef& op, const Attrs& attrs, const FactorRule& rule,
                std::vector<DimPiece> pieces, uint64_t seed,
                std::vector<const HostTensor<typename M::Scalar>*> inputs,
                std::vector<HostTensor<typename M::Scalar>>* outputs) {
  EvalContext<M> context{model, attrs, rule, std::move(pieces), seed, std::move(inputs), {}};
  for (HostTensor<typename M::Scalar>& output : *outputs) context.outputs.push_back(&output);
  op.eval(context);
}

// The tile of a whole tensor that `pieces` (one per dim) describe; its padding is zero.
template <class S>
HostTensor<S> TileOf(const HostTensor<S>& whole, const std::vector<DimPiece>& pieces);

// Evaluates one node on one device: whole operands in, whole results out, both of logical shape.
template <class M>
std::vector<HostTensor<typename M::Scalar>> EvaluateWhole(
    const M& model, const OpDef& op, const Attrs& attrs, const FactorRule& rule,
    const std::vector<TensorType>& results,
    const std::vector<const HostTensor<typename M::Scalar>*>& operands, uint64_t seed);

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_EVALUATE_OP_H_
