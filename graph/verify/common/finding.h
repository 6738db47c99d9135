// What the proof of a plan holds against it is a Diagnostic; docs/verify.md lists the labels:
//   placement_v*   a sharding that does not follow, a sum that is owed and not paid
//   order_v*       a step that hangs, a wait that is missing, lists that do not match
//   memory_v*      live buffers that overlap, a wrong peak
//   meaning_v*     the instructions compute something else than the model
// Its place is `class 3` or `segment layer.forward, instruction 4 all_reduce`.

#ifndef MGC_GRAPH_VERIFY_COMMON_FINDING_H_
#define MGC_GRAPH_VERIFY_COMMON_FINDING_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"

namespace mgc {

// What a status says whose message ends in ` [label]`, a label of the same part as `otherwise`; any
// other message stays whole, under `otherwise`.
Diagnostic FindingOf(const absl::Status& status, absl::string_view place,
                     absl::string_view otherwise);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_FINDING_H_
