// Weights of products as whole numbers.
//
//   param %w: f32[embed,mlp]              ->   param %w.int8: i8[embed,mlp] {channels=1}
//                                              param %w.scale: f32[mlp]
//   %y = matmul(%x, %w)                        %y = scaled_matmul(%x, %w.int8, %w.scale)
//
// Of a model that nothing trains: a token of a text reads every weight once, and is as fast as
// that. A weight has one scale for each element of the result's dims that it alone has, its
// channels, so that the product is scaled behind its sum. What is read as well in other ways, as a
// table that is also the head, stays beside its whole numbers. Runs on the model itself: the plan
// is of the model that comes out, and is proved to compute that
// (docs/decisions/0064-quantized-weights.md).

#ifndef MGC_PASSES_GRAPH_QUANTIZE_H_
#define MGC_PASSES_GRAPH_QUANTIZE_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

// Products whose channels are not the last dims of the result, or not neighbours in the weight,
// stay as they are. InvalidArgument: quantize_c1 for a model that trains a parameter, quantize_c2
// where no product has such a weight, quantize_c3 where a name that a parameter would get is taken.
absl::StatusOr<Graph> Quantize(const Graph& model);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_QUANTIZE_H_
