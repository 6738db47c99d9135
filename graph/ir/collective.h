// What a collective node does, read off the shardings of its operand and result.

#ifndef MGC_GRAPH_IR_COLLECTIVE_H_
#define MGC_GRAPH_IR_COLLECTIVE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/types/axis.h"

namespace mgc {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllReduceMax,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSlice,  // local
  kLift,   // local
};
// `all-reduce`, `all-reduce-max`, ... as reports print it.
absl::string_view NameOf(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisList axes;    // major first, as the dim concerned lists them
  int dim = -1;     // dim gathered, scattered or sliced; -1: the flat tile (storage), or none
  int to_dim = -1;  // all-to-all: the dim that receives the axes
  // Whether ranks exchange anything.
  bool MovesData() const { return kind != CollectiveKind::kSlice && kind != CollectiveKind::kLift; }
};

// Whether it pays a sum over ranks that hold other data, those of the axes dp and cp: over these
// alone or over tp as well. Sums of f32 that are paid so once a step are gradients.
bool PaysOverData(const Collective& collective, const Mesh& mesh);

// The collective that leads from one sharding to another when it changes all that differs between
// them; no dim is gathered, scattered or sliced of a tile that is stored in pieces. [local_c3]
absl::StatusOr<Collective> CollectiveBetween(const Sharding& from, const Sharding& to,
                                             absl::string_view op);
// What the collective makes of a sharding that has what it takes away.
Sharding ShardingAfter(const Collective& collective, Sharding from);
// Of a node of a checked local graph.
Collective CollectiveOf(const Graph& graph, const Node& node);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_COLLECTIVE_H_
