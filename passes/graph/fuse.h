// Replaces small ops by the fused ones a backend has kernels for.
//
//   %d = matmul(%x, %dy); %a.next = accumulate(%a, %d)
//     ->  %a.next = matmul_accumulate(%a, %x, %dy)
//   %d = lookup_grad(%w, %ids, %dy); %a.next = accumulate(%a, %d)
//     ->  %a.next = lookup_grad_accumulate(%a, %ids, %dy)
//   %e = exp_sum_grad(%l, %m, %dz); %p = pick_grad(%l, %t, %dp); %g = add(%e, %p)
//     ->  %g = cross_entropy_grad(%l, %m, %dz, %t, %dp)
//   %p = matmul(%x, %w); %y = add(%p, %bias)
//     ->  %y = matmul_bias(%x, %w, %bias)
//   %h = add(%x, %bias); %y = gelu(%h)
//     ->  %y = bias_gelu(%x, %bias)
//
// What is looked for stands in the op table: the expansion of every op that asks for it
// (OpDef::replaces_expansion). Only nodes of one layer and phase fuse, so that no legal cut point
// lies inside. Runs on the local graph after recompute has decided what is kept: what fuses is what
// one rank really computes.

#ifndef MGC_PASSES_GRAPH_FUSE_H_
#define MGC_PASSES_GRAPH_FUSE_H_

#include "graph/ir/graph.h"

namespace mgc {

Graph Fuse(const Graph& local);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_FUSE_H_
