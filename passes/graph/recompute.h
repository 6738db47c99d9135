// Trades time for memory: values that backward would read from the frame are computed again.
//
//   layer forward:  %h = matmul(%x, %w); %y = gelu(%h)      kept: %x (full), not %h
//   layer backward: %h' = matmul(%x, %w); %dh = gelu_grad(%dy, %h')
//
//   selective  the core of attention: its output and statistics are computed again; where it is
//              said in small ops, scores and what is as large (passes/graph/large_products.h)
//   full       every layer keeps only its input
//
// Each layer has a kind of its own (passes/config/recomputation.h).
//
// Forward nodes are copied into the backward phase, collectives included, where backward needs what
// they make, but for what backward gathers of the same operand anyway; those that nothing reads any
// more are dropped. Dropout is a function of position, so the copies are equal bit for bit. Works
// on the local graph: shardings are fixed, so recomputation never changes what is communicated
// where.

#ifndef MGC_PASSES_GRAPH_RECOMPUTE_H_
#define MGC_PASSES_GRAPH_RECOMPUTE_H_

#include "graph/ir/graph.h"
#include "passes/config/recomputation.h"

namespace mgc {

// `recomputation` is of the graph's layers.
Graph Recompute(const Graph& local, const Recomputation& recomputation);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_RECOMPUTE_H_
