// Parts of graph/plan/proto/plan_wire.h that lie in files of their own.

#ifndef MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_INTERNAL_H_
#define MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_INTERNAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "graph/plan/proto/plan.pb.h"
#include "graph/types/mesh.h"

namespace mgc {

void ToWire(const Plan& plan, wire::Plan* out);

void ToWire(const Formal& formal, wire::Formal* out);
absl::Status FromWire(const wire::Formal& message, Formal* out);

void ToWire(const Segment& segment, wire::Segment* out);
absl::Status FromWire(const wire::Segment& message, const Mesh& mesh, Segment* out);

void AddTensors(const std::vector<NamedTensor>& tensors,
                google::protobuf::RepeatedPtrField<wire::NamedTensor>* out);
absl::StatusOr<std::vector<NamedTensor>> ReadTensors(
    const google::protobuf::RepeatedPtrField<wire::NamedTensor>& messages, const Mesh& mesh);
void ToWire(const PlanClass& rank_class, wire::PlanClass* out);
absl::Status FromWire(const wire::PlanClass& message, const Mesh& mesh, int64_t* room,
                      PlanClass* out);

// `room` is that of Unfold (graph/plan/plan_fold.h), over all programs of a plan.
void ToWire(const Program& program, wire::Program* out);
absl::Status FromWire(const wire::Program& message, int64_t* room, Program* out);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_INTERNAL_H_
