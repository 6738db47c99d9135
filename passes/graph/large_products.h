// Values of forward that take much memory and little time: what attention in small ops keeps.
//
//   %scores = matmul(%q, %k)        [b, h, s, t] from [b, s, h, d] and [b, t, h, d]
//   %p = softmax(%scores)           as large
//   %kept = dropout(%p)             as large
//   %mix = matmul(%kept, %v)        small again
//
// A product of two values of the data that is larger than both together costs few flops for each
// byte of it; so does what is computed from it, without a product, and is as large.

#ifndef MGC_PASSES_GRAPH_LARGE_PRODUCTS_H_
#define MGC_PASSES_GRAPH_LARGE_PRODUCTS_H_

#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

// By node: whether it makes such a value; in the example `scores`, `p` and `kept`.
std::vector<bool> LargeProducts(const Graph& graph);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_LARGE_PRODUCTS_H_
