// Bytes of graphs, meshes and machines (graph/proto/mgc.proto), in both directions.
//
// Writing is deterministic. Reading trusts nothing: every number and name is checked, types are
// inferred again and must agree; InvalidArgument says what is wrong and at which place of the
// message (`node 3`, `value 7`). Unlike the text form, bytes keep the numbering of values.

#ifndef MGC_GRAPH_PROTO_WIRE_H_
#define MGC_GRAPH_PROTO_WIRE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/proto/mgc.pb.h"
#include "graph/types/machine.h"
#include "graph/types/mesh.h"

namespace mgc {

// Version of all wire messages. A reader takes exactly this one.
inline constexpr uint32_t kWireVersion = 2;

// Documents that stand alone. Reading errors: [wire_c1] no such message, [wire_c2] another version,
// [wire_c3] another kind of object, and those of the functions below.
std::string SerializeGraph(const Graph& graph);
std::string SerializeMesh(const Mesh& mesh);
std::string SerializeMachine(const Machine& machine);
absl::StatusOr<Graph> DeserializeGraph(absl::string_view bytes);
absl::StatusOr<Mesh> DeserializeMesh(absl::string_view bytes);
absl::StatusOr<Machine> DeserializeMachine(absl::string_view bytes);

// Messages, for documents that hold several. Errors of FromWire: [wire_c4] a name that does not
// exist, [wire_c5] a number out of range, [wire_c6] a type that disagrees with the inferred one,
// and those of the parts (graph/ir/assemble.h, graph/types/mesh.h, graph/types/machine.h, the ops).
void ToWire(const Mesh& mesh, wire::Mesh* out);
void ToWire(const Machine& machine, wire::Machine* out);
void ToWire(const Graph& graph, wire::Graph* out);
void ToWire(const Attrs& attrs, google::protobuf::RepeatedPtrField<wire::Attr>* out);
void ToWire(const TensorType& type, wire::TensorType* out);
void ToWire(const Sharding& sharding, wire::Sharding* out);
absl::StatusOr<Mesh> FromWire(const wire::Mesh& message);
absl::StatusOr<Machine> FromWire(const wire::Machine& message);
absl::StatusOr<Graph> FromWire(const wire::Graph& message);
absl::StatusOr<Attrs> FromWire(const google::protobuf::RepeatedPtrField<wire::Attr>& message);
absl::StatusOr<TensorType> FromWire(const wire::TensorType& message);
absl::StatusOr<Sharding> FromWire(const wire::Sharding& message, const TensorType& type,
                                  const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_PROTO_WIRE_H_
