// Cuts the products of forward that stand behind or before a collective into pieces of rows, so
// that each piece's exchange runs beside the product of another.
//
//   %p = matmul(%x, %w)            %x.1 = slice(%x) 0..half         %x.2 = slice(%x) half..
//   %y = all_reduce(%p)       ->   %p.1 = matmul(%x.1, %w)          %p.2 = matmul(%x.2, %w)
//                                  %y.1 = all_reduce(%p.1)          %y.2 = all_reduce(%p.2)
//                                  %y = concat(%y.1, %y.2)
//
// In forward the next op reads each sum and a layer has nothing else to compute meanwhile; in
// backward there are the gradients of weights (passes/graph/overlap.h), and nothing is cut. A
// gathered operand is cut likewise, and read in pieces by all its products. Where a collective cuts
// a dim or makes it whole, every rank has a run of rows: then a piece is the same part of each run,
// and rows are [runs, rows of a run] while they are in pieces.
//
// Rows of a product do not know of each other: no bit changes. It costs the copies into and out of
// pieces. Runs after fuse, which decides what is one node, and before overlap, which starts one
// piece's exchange before the product of the next.

#ifndef MGC_PASSES_GRAPH_SPLIT_PRODUCTS_H_
#define MGC_PASSES_GRAPH_SPLIT_PRODUCTS_H_

#include <cstdint>

#include "graph/ir/graph.h"

namespace mgc {

// Into up to `pieces` >= 1 each: as many as divide the rows of a run. The graph as it is where no
// product can be cut.
Graph SplitProducts(const Graph& local, int64_t pieces);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SPLIT_PRODUCTS_H_
