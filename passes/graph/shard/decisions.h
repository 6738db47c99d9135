// Why `shard` lays values out as it does: what it decides, written down while it decides. Nothing
// here is found out afterwards, so that an explanation cannot say otherwise than the pass did.

#ifndef MGC_PASSES_GRAPH_SHARD_DECISIONS_H_
#define MGC_PASSES_GRAPH_SHARD_DECISIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/types/axis.h"
#include "passes/graph/shard/claims.h"

namespace mgc {

// The rules of docs/derivation.md that give a value an axis, or take one away.
enum class ShardRule : uint8_t {
  kRow,        // home: a row of the table
  kStore,      // home: a store of the table
  kPin,        // a pin
  kLike,       // home: as its parameter, or as the value that it is the gradient of
  kClaim,      // claims: `by` claimed a factor of the dim for the node
  kContracts,  // owed: `by` claimed a factor that the result lacks
  kCarries,    // owed: `by` owes, and the node is linear in it
  kAdds,       // add: as the term `by`
  kCollects,   // home: an accumulator is as `by`, which it collects
  kLifts,      // lift: each rank contributes its own, one sum for all entries
  kWorksOn,    // storage: on the pieces of `by`
  kPaid,       // resolve: the sum is paid behind the node
};

// What became of one axis in one value.
struct ShardDecision {
  ValueId value = kNone;  // of the training graph, as all ids here
  AxisId axis = 0;
  int dim = -1;  // that the axis cuts; -1: a sum, pieces, or nothing any more
  ShardRule rule = ShardRule::kRow;
  ValueId by = kNone;     // the value whose layout decided; none: what is said did
  std::string said = {};  // the row or store as its file has it, the pin
  bool brought = false;   // where the value goes behind its node, not what the node makes
};

// An operand's axis that a node could not use: the operand is gathered there.
struct ShardRefusal {
  NodeId node = kNone;
  ValueId operand = kNone;
  RefusedClaim claim;
};

struct ShardRecord {
  // In the order of the sweep. Of a graph input's axis the last holds: states and sums of gradients
  // are laid out anew once it is known what they are of.
  std::vector<ShardDecision> decisions;
  std::vector<ShardRefusal> refusals;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_DECISIONS_H_
