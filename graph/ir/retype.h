// The same graph over other types: other sizes, other names of dims.

#ifndef MGC_GRAPH_IR_RETYPE_H_
#define MGC_GRAPH_IR_RETYPE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace mgc {

// `graph` with type `type_of(value)` for every value; attributes that state sizes or names of
// results follow (OpDef::resized). Without shardings, which are of the mesh and its sizes.
// InvalidArgument, naming the op's first result, where an op cannot make results of these sizes.
absl::StatusOr<Graph> Retype(const Graph& graph, const std::function<TensorType(ValueId)>& type_of);

// The attributes of a use of `op` whose results have these types.
Attrs RetypedAttrs(const OpDef& op, const Attrs& attrs,
                   absl::Span<const TensorType* const> results);

// Whether the op makes results of these sizes from its operands, and its rule binds to them.
absl::Status CheckMakes(const OpDef& op, const OpUse& use);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_RETYPE_H_
