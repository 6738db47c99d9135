// Axes that operands lose on the way into an op, each taken as the strategy says of its dim.

#ifndef MGC_PASSES_GRAPH_SHARD_GATHERS_H_
#define MGC_PASSES_GRAPH_SHARD_GATHERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

class Gathers {
 public:
  Gathers(const Graph& source, const Strategy& strategy, const Mesh& mesh)
      : source_(source), strategy_(strategy), mesh_(mesh) {}

  // The node gathers an operand that is laid out as `has` to `wanted`. InvalidArgument, shard_c1,
  // where the strategy lets nobody gather the dim.
  absl::Status Take(ValueId operand, const Sharding& has, const Sharding& wanted, const Node& node);

  // What a user may want to know, once for all layers: `rms_norm gathers dim mlp of %x over tp`.
  std::vector<std::string> Notes() && { return std::move(notes_); }

 private:
  // The first dim that is not passed over in silence; -1 for none.
  int GatheredDim(const TensorType& type, const Sharding& has, const Sharding& wanted) const;

  const Graph& source_;
  const Strategy& strategy_;
  const Mesh& mesh_;
  std::vector<std::string> notes_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_GATHERS_H_
