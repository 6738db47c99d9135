// Gives everything its bytes: offsets inside segments, addresses of blocks, frames and boundary
// slots, and the peak.
//
// A class' arena, in this order: values of the whole step, gradients (zeroed together), parameters,
// optimizer state, gradient links between layers, frames, boundary slots, transient. Frames are
// placed first-fit along the compute list: taken by a forward, given back by its backward. Runs
// last, because every lifetime is known only once order has fixed all lists.

#ifndef MGC_PASSES_PLAN_ALLOCATE_H_
#define MGC_PASSES_PLAN_ALLOCATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "passes/plan/plan_forms.h"

namespace mgc {

// The finished plan but for its header (name, options, machine, model, batches): every address is a
// byte offset into the rank's arena, memory.peak its end.
Plan Allocate(OrderedPlan ordered);

// R8, InvalidArgument with a line per class: a device of the plan's machine has less memory than
// the class needs.
absl::Status CheckFits(const Plan& plan);

// Places intervals [begin, end] with sizes so that those alive together do not overlap; returns
// their offsets and, in `total`, the highest end. Exposed for its test.
struct Interval {
  int begin = 0;
  int end = 0;  // inclusive
  int64_t bytes = 0;
};
std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_ALLOCATE_H_
