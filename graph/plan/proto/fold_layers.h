// Model graphs written down short: the layers behind the second one, where they repeat it, are
// stored as a number.
//
//   layer 0, layer 1, layer 2, ..., head   ->   layer 0, layer 1 (95 times), head

#ifndef MGC_GRAPH_PLAN_PROTO_FOLD_LAYERS_H_
#define MGC_GRAPH_PLAN_PROTO_FOLD_LAYERS_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/plan/proto/plan.pb.h"

namespace mgc {

// What an unfolded graph may have together: inputs, nodes and values, and bytes as a message. Keeps
// a short hostile message from filling the memory.
inline constexpr int64_t kMaxUnfoldedItems = int64_t{1} << 21;
inline constexpr int64_t kMaxUnfoldedBytes = int64_t{1} << 28;

// The graph with its values numbered anew, as the text form reads them: inputs first, then results
// in program order. Layers 1, 2, ... are folded as far as each is layer 1 with another number: in
// `layer`, in `layers.1.` of names, text attributes and origins, and in the numbers of values of
// the same and the previous layer.
void FoldLayers(const Graph& graph, wire::FoldedGraph* out);

// The whole graph's message. [wire_c5] when a count is out of range.
absl::StatusOr<wire::Graph> UnfoldLayers(const wire::FoldedGraph& message);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PROTO_FOLD_LAYERS_H_
