// A strategy's rows held against the values they cut: sizes that axes do not divide, value by
// value, whatever the dims are called.
//
//   row * { mlp -> tp }, tp 4        %layers.1.up: tp 4 does not divide dim mlp of
//   f32[embed=8,mlp=10], param %layers.1.up: ...    ->    which `row * { mlp -> tp }` cuts
//   [shard_c6]; nearest legal: ...
//
// Labels: shard_c6 a dim in unequal pieces that the strategy does not let be `uneven`;
// T3 a value of which a rank would hold too much.

#ifndef MGC_PASSES_GRAPH_SHARD_CHECK_ROWS_H_
#define MGC_PASSES_GRAPH_SHARD_CHECK_ROWS_H_

#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

// Parameters, data, and the forward values that rows bring home. Of these a value that cannot be
// cut stays where its producer makes it (a slice of the residual stream), so that only a row that
// could cut none is reported. One diagnostic for all values in which a dim of one size is cut
// alike.
Diagnostics CheckRows(const Graph& graph, const Strategy& strategy, const Mesh& mesh);

// Values of a sharded graph of which a rank holds more than 2^42 elements.
Diagnostics CheckTiles(const Graph& sharded);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_CHECK_ROWS_H_
