// Orders the nodes of a layer so that its collectives run beside compute: each stands right behind
// what makes its operand, and what nobody waits for stands between it and its first reader.
//
//   %dw = matmul(%x, %dy); %dx = matmul(%dy, %w); %s = all_reduce(%dx); %r = add(%s, %skip)
//     ->  %dx = matmul(%dy, %w); %s = all_reduce(%dx); %dw = matmul(%x, %dy); %r = add(%s, %skip)
//
// Forward and backward of every layer alike; collectives keep their order among themselves, and
// layers without any theirs. No value changes, only when it is made: what stands behind a start
// keeps its operands alive for longer. Works on the local graph, where collectives are spelled out;
// runs after fuse, which decides what is one node, and before stage, which puts waits before first
// readers.

#ifndef MGC_PASSES_GRAPH_OVERLAP_H_
#define MGC_PASSES_GRAPH_OVERLAP_H_

#include "graph/ir/graph.h"

namespace mgc {

Graph Overlap(const Graph& local);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_OVERLAP_H_
