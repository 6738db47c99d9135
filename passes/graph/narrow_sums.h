// Gradients that travel in a narrower type than f32 when they are summed over ranks that hold other
// data.
//
//   %w/grad.resolved = all_reduce(%w/grad.next)
//     ->  %w/grad.next.bf16 = cast(%w/grad.next)
//         %w/grad.resolved.bf16: bf16 = all_reduce(%w/grad.next.bf16)
//         %w/grad.resolved = cast(%w/grad.resolved.bf16)
//
// Half as many bytes move. The sums over micro-batches before, and all that the update does behind,
// stay f32; what is summed over ranks that hold the same data, over tp alone or between copies of a
// tied weight, too. A rank rounds its share and the sum is rounded once more: between the two it is
// f32 (runtime/comm/arithmetic.cc).
//
// Runs on the local graph, where it is known which sums are owed over which ranks.

#ifndef MGC_PASSES_GRAPH_NARROW_SUMS_H_
#define MGC_PASSES_GRAPH_NARROW_SUMS_H_

#include "graph/ir/graph.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// `type` is narrower than f32, or f32 itself, for which nothing is done.
Graph NarrowSums(const Graph& local, DType type);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_NARROW_SUMS_H_
