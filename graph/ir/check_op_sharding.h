// Whether the shardings of an op's results follow from those of its operands: the factor rules
// applied forwards, for one node of a graph or one instruction of a plan. Derives everything anew,
// by other code than the passes that choose shardings.

#ifndef MGC_GRAPH_IR_CHECK_OP_SHARDING_H_
#define MGC_GRAPH_IR_CHECK_OP_SHARDING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/op.h"
#include "graph/types/attrs.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// An operand or result. The sharding fits the type and the mesh (CheckShardingBounds).
struct LaidOut {
  absl::string_view name;
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
};

struct OpSharding {
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  const Mesh* mesh = nullptr;
  std::vector<LaidOut> operands;
  std::vector<LaidOut> results;  // of the types that the op infers
};

enum class ShardingFaultKind {
  kOperandCut,   // operands cut a factor in two ways, or one that must be whole; an axis serves two
  kResultCut,    // a result is cut otherwise than the operands
  kOwedOperand,  // an operand owes what the op cannot carry
  kOwedResult,   // a result owes other sums or maxima than contraction and operands leave
  kCollective,   // a collective changes something else than its op says
  kNoRule,       // the op has no factor rule for these types; type inference refuses them too
};

struct ShardingFault {
  ShardingFaultKind kind;
  std::string text;  // names op, values, axes, what is owed and where it should have been paid
};

// The first fault, or none, of an op that moves nothing; of a collective (one operand, one result)
// its change of sharding.
// `reshard` may change anything here, except that it cannot make a maximum owed.
std::vector<ShardingFault> CheckOpSharding(const OpSharding& use);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_CHECK_OP_SHARDING_H_
