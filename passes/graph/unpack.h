// Parameters that a model packs into one tensor and reads in parts.
//
//   param %w: f32[embed=8,24]                        param %w.0: f32[embed=8,8]
//   %qkv = matmul(%x, %w)                     ->     param %w.1: f32[embed=8,16]
//   %q = slice(%qkv) {begin=0, end=8}                %q = matmul(%x, %w.0)
//   %kv = slice(%qkv) {begin=8, end=24}              %kv = matmul(%x, %w.1)
//
// What reads such a parameter along a dim comes to slices, which between them take every element of
// it once: of the parameter itself, or of what ops make of it that keep the dim apart (products,
// biases, reshapes that split off its parts). Each part becomes a parameter. A packed dim could be
// cut over ranks only by runs that lie across its parts, whole heads of q beside none of v; its
// parts can be cut one by one, as the same layers with a weight for each would be. Runs on the
// model itself before dims get their names: the plan is of the model that comes out.

#ifndef MGC_PASSES_GRAPH_UNPACK_H_
#define MGC_PASSES_GRAPH_UNPACK_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

// The parts are named after the parameter, `%w.0`, `%w.1`, in order, and have its attributes; a
// note says so. A graph in which an op refuses a part stays as it is, with a note of the reason.
Graph Unpack(Graph logical, std::vector<std::string>* notes);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_UNPACK_H_
