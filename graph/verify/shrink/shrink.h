// The same plan at small sizes.
//
// Every dim shrinks to a handful of elements (dim_sizes.h), the step to micro-batches 0, 1 and
// M - 1 (kept_micro_batches.h). Types, attributes, shapes, counts and offsets follow anew from the
// small sizes; addresses and rooms of slots stay those of the plan, since what overlaps what is
// part of its meaning. Stages stay as they are.

#ifndef MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
#define MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"

namespace mgc {

// What a step of a shrunk plan takes, in products of numbers.
using StepWorkOf = absl::FunctionRef<double(const Plan& small)>;

// `plan` on `mesh`, which has the same axes with other sizes. Sizes that take a moment to execute
// are taken before others, and none that take too long. An error, with label meaning_v1, when the
// plan's sizes depend on each other in a way that allows no others, or when all that there are take
// too long.
absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh, StepWorkOf work);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
