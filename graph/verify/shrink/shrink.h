// The same plan at small sizes: what is executed to prove its meaning.
//
// Every axis but pp shrinks to 2 to 4 ranks, every dim to a handful of elements (dim_sizes.h), the
// step to micro-batches 0, 1 and M - 1. Types, attributes, shapes, counts and offsets follow anew
// from the small sizes; addresses and rooms of slots stay those of the plan, since what overlaps
// what is part of its meaning. Stages and layers stay as they are.

#ifndef MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
#define MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_

#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"

namespace mgc {

// Two meshes: every axis but pp is at least 3 in one of them, no two axes are equal in
// both. An axis that leaves a rest of some dim is 4 in one. An error, with label meaning_v1, for a
// mesh with more axes than that is possible for.
absl::StatusOr<std::vector<Mesh>> SmallMeshes(const Plan& plan);

// `plan` on `mesh`, one of SmallMeshes. An error, with label meaning_v1, when its sizes depend on
// each other in a way that allows no smaller ones.
absl::StatusOr<Plan> ShrinkPlan(const Plan& plan, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_SHRINK_H_
