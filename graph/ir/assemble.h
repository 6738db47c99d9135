// What every reader of graphs, from text or from bytes, checks of what it has read before it hands
// a part to GraphBuilder. Together with names that exist, these make a graph that every pass may
// rely on: no input reaches an invariant.

#ifndef MGC_GRAPH_IR_ASSEMBLE_H_
#define MGC_GRAPH_IR_ASSEMBLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/types/attrs.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Bounds far above any real model that keep products of sizes inside 64 bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 50;      // of one value
inline constexpr int64_t kMaxTileElements = int64_t{1} << 42;  // of what one rank holds of it
inline constexpr int64_t kMaxDimMultiple = int64_t{1} << 24;
inline constexpr int kMaxDims = 16;
inline constexpr int kMaxLayers = 1 << 20;

// Sizes and multiples at least 1 and within the bounds above. [type_c1]
absl::Status CheckTypeBounds(const TensorType& type);

// Makes attributes fit their declared types: an integer where a real is declared becomes one.
void CoerceAttrs(absl::Span<const AttrSpec> specs, Attrs* attrs);

// The attributes that an input of this kind may have (graph/ir/graph.h).
absl::Span<const AttrSpec> InputAttrSpecs(InputKind kind);

// Types of the known attributes, and the values they may have: `init` normal, zeros or ones; `std`
// finite and not negative; `decay` 0 or 1; an accumulator and a state say what they are `of`.
// [input_c1] a type, [input_c2] a value, [input_c3] one is missing, [input_c4] one is unknown.
absl::Status CheckInputAttrs(InputKind kind, const Attrs& attrs);

// The op of that name, or InvalidArgument with the nearest name. [text_c5]
absl::StatusOr<const OpDef*> FindOpOrSuggest(absl::string_view name);

// Types of the results of a node; as InferTypes, with CheckTypeBounds of every result.
absl::StatusOr<std::vector<TensorType>> InferNode(const OpDef& op, const Attrs& attrs,
                                                  absl::Span<const TensorType* const> operands);

// Whether `written` may be the type of a value whose inferred type is `inferred`: element type and
// sizes agree. Names and multiples of dims are the graph's own business (graph/ir/check.h).
bool TypesAgree(const TensorType& written, const TensorType& inferred);

// As CheckSharding, also for axis numbers that the mesh does not have. [sharding_c4]
absl::Status CheckShardingBounds(const TensorType& type, const Sharding& sharding,
                                 const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_ASSEMBLE_H_
