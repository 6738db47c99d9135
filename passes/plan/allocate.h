// Gives everything its bytes: offsets inside segments, addresses of blocks, frames and boundary
// slots, and the peak.
//
//   0F1 output 2                          ->   0F1 frame 8192 output 20608
//   @layer.forward (params, frame+64)     ->   @layer.forward (params=4096, frame=frame+64)
//
// A class' arena, in this order: values of the whole step, gradients (zeroed together), parameters,
// optimizer state, gradient links between layers, frames, boundary slots, transient. Runs last,
// because every lifetime is known only once order has fixed all lists.

#ifndef MGC_PASSES_PLAN_ALLOCATE_H_
#define MGC_PASSES_PLAN_ALLOCATE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// The finished plan but for its header (name, options, machine, model, batches): every address is a
// byte offset into the rank's arena, memory.peak its end; scratch is that of kernels of `host`. R8,
// InvalidArgument with a line per class: it needs more than kMaxPlanBytes, whatever the device.
absl::StatusOr<Plan> Allocate(OrderedPlan ordered, KernelHost host);

// R8 too: a device of the plan's machine has less memory than a class needs.
absl::Status CheckFits(const Plan& plan);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_ALLOCATE_H_
