// Whether a plan's parts fit together, so that whoever walks it needs no checks of its own. Both
// readers of plans apply it (graph/plan/proto/plan_wire.h, graph/plan/text/plan_text.h). It says
// nothing about the order of communication or about meaning: that is for the proof of a plan.

#ifndef MGC_GRAPH_PLAN_PLAN_CHECK_H_
#define MGC_GRAPH_PLAN_PLAN_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// What constraint is violated, where. docs/plan.md has the labels with their reasons:
//   plan_c1   classes, batches, machine      plan_c8   collectives are started and waited for once
//   plan_c2   a slot                         plan_c9   a collective changes one thing in a sharding
//   plan_c3   an instruction                 plan_c10  everything lies inside its region
//   plan_c4   parameters and who holds them  plan_c11  what runs, how often, in which order
//   plan_c5   a call binds its formals       plan_c12  every send has its receive
//   plan_c6   what actions and transfers     plan_c13  every layer is in one stage
//             name exists                  plan_c14  what is loaded is fed
//   plan_c7   sizes and addresses          plan_c15  workspaces hold what kernels may use
//   plan_c16  who runs a collective        plan_c17  what a start takes together
//             between stages               plan_c18  results of collectives and their operands
//   plan_c19  where stages live              plan_c20  neighbours on one class hand over in place

// Of an arena. Far above any device; sums of a few stay inside 64 bits.
inline constexpr int64_t kMaxPlanBytes = int64_t{1} << 58;

// How far a plan in the making is decided. The rest of it is not looked at.
enum class PlanExtent : uint8_t {
  kStages,   // segments, blocks and calls; no lists
  kActions,  // and which actions run in which order
  kAll,
};

// All violations, each at a place of its own: `plan`, `segment layer.forward`, `block head`,
// `class 3`. What depends on a violated constraint may be left unchecked.
Diagnostics FindPlanViolations(const Plan& plan, PlanExtent extent = PlanExtent::kAll);

// OK, or InvalidArgument with all violations.
absl::Status CheckPlan(const Plan& plan);
// The same, and plan_c14: what a plan that is to run loads is something that a step can be fed with
// (graph/plan/data_input.h).
absl::Status CheckPlanToRun(const Plan& plan);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_CHECK_H_
