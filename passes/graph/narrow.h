// A training step in a narrower type than f32.
//
//   %y = matmul(%x, %w)          ->   %w.bf16 = cast(%w) prepare
//   %s = add(%y, %b)                  %b.bf16 = cast(%b) prepare
//   %l = total(%s)                    %x.bf16 = cast(%x)
//                                     %y: bf16 = matmul(%x.bf16, %w.bf16)
//                                     %s: bf16 = add(%y, %b.bf16)
//                                     %s.f32 = cast(%s)
//                                     %l = total(%s.f32)
//
// Products are narrow, and so is what follows from them: the residual stream, activations, their
// gradients. What ops register as wide stays in f32 (OpDef::wide_operands, Precision::kWide):
// losses, statistics, sums that live on, the update. Parameters are those of f32, with their names,
// files and moments; products read rounded copies of them, made once when a step begins, one for
// every layer that reads it. What goes into a gradient's sum is not
// rounded before: products and sums of the kind are asked for f32. What a step leaves for the next
// one, as keys and values, is held in f32 and read as what is written into it was computed.
//
// Runs on the differentiated step, so that backward is told by the same table as forward, and
// before sharding: casts are sharded like any op, and a collective moves the type of its value.

#ifndef MGC_PASSES_GRAPH_NARROW_H_
#define MGC_PASSES_GRAPH_NARROW_H_

#include "graph/ir/graph.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// `type` is narrower than f32, or f32 itself, for which nothing is done. Inputs and outputs keep
// their types.
Graph Narrow(const Graph& step, DType type);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_NARROW_H_
