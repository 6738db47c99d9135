// A matrix made orthogonal, in small ops, as muon's step follows it.
//
//   %w.direction                  ->  %w.whole = reshard(%w.direction) {pin=1, sharding="-,-"}
//   (laid out as the optimizer's      %w.squares = sum_squares(%w.whole)
//    states are)                      %w.unit = mul(%w.whole, inverse_norm(%w.squares))
//                                     five times:
//                                       %a = matmul(%x, %x)          the Gram matrix of the
//                                       %b = add(scale(%a), scale(matmul(%a, %a)))  shorter side
//                                       %x = add(scale(%x), matmul(%b, %x))
//                                     %w.orthogonal = spectral_scale(%x)
//
// The whole matrix stands on every rank, so that no axis of the mesh changes what is made of it.
// Dims stay as they are: a product contracts all dims of a side.

#ifndef MGC_PASSES_GRAPH_ORTHOGONAL_H_
#define MGC_PASSES_GRAPH_ORTHOGONAL_H_

#include <cstdint>
#include <string>

#include "graph/ir/graph.h"

namespace mgc {

// The first `row_dims` dims of `direction` count its rows, the others its columns. `like`: phase,
// layer and origin of the nodes; `name` begins the names of their results.
ValueId MakeOrthogonal(GraphBuilder* builder, ValueId direction, int row_dims, const Node& like,
                       const std::string& name);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_ORTHOGONAL_H_
