// Plan files: a header and a protocol buffer (graph/plan/proto/plan.proto).
//
//   bytes 0..7    "MGCPLAN\n"
//   bytes 8..11   version, kPlanVersion
//   bytes 12..15  version of the verifier that has proved the plan, 0: none
//   bytes 16..23  length of what follows the header
//   bytes 24..31  xxh3 (64 bits) of what follows
//   bytes 32..39  of a proved plan the xxh3 of what follows, that version being the seed; else 0
//   bytes 40..    the message
//
// Numbers are little-endian. To verify a plan changes its header only; a plan that changes is no
// longer verified. Writing is deterministic. Reading trusts nothing; the checksum only tells damage
// from forgery.

#ifndef MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_H_
#define MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// The plan has passed CheckPlan. Values of its model are numbered anew: inputs first, then results
// in program order.
std::string SerializePlan(const Plan& plan);

// The plan in `bytes`; it has passed CheckPlan (graph/plan/plan_check.h). `name` is what errors
// call the bytes. InvalidArgument: [file_c1] no plan file, [file_c2] another version, [file_c3] cut
// short or too long, [file_c4] damaged, and the errors of graph/proto/wire.h and
// graph/plan/plan_check.h.
absl::StatusOr<Plan> DeserializePlan(absl::string_view bytes, absl::string_view name);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PROTO_PLAN_WIRE_H_
