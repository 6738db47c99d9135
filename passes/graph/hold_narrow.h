// What a step that trains nothing holds, in the type that it is read in.
//
//   %w: f32 param                      ->   %w: bf16 param
//   %t: f32 param                           %t: bf16 param
//   %w.bf16 = cast(%w) prepare              %y = matmul(%x, %w)
//   %y = matmul(%x, %w.bf16)                %e: bf16 = lookup(%t, %ids)
//   %e = lookup(%t, %ids)
//   %e.bf16 = cast(%e)
//
// A step that trains keeps its parameters in f32 (passes/graph/narrow.h). One that only asks the
// model would round all of them anew for every token, and hold both. What is read in f32 somewhere,
// as weights of norms, stays. No result changes: a lookup of rounded rows is a rounded lookup, and
// keys and values that are left for the next step are read as rounded as they are held.
//
// Runs behind narrow, which decides what is read in which type, and before shard.

#ifndef MGC_PASSES_GRAPH_HOLD_NARROW_H_
#define MGC_PASSES_GRAPH_HOLD_NARROW_H_

#include "graph/ir/graph.h"

namespace mgc {

// A step of a model that is not asked (graph/ir/results.h), or that is of f32 alone, is returned as
// it is.
Graph HoldNarrow(const Graph& step);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_HOLD_NARROW_H_
