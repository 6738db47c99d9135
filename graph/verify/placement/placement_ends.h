// Where a step begins and ends: parameters, optimizer state, scalars, reports, and the boundaries
// between stages. placement_v9 to placement_v11.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_ENDS_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_ENDS_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "graph/verify/placement/placement_calls.h"

namespace mgc {

// Every parameter of the model is held once by an owner, with the model's type; copies apart.
void CheckModelInputs(const Plan& plan, Diagnostics* findings);

// Tensors are left for others (graph/ir/results.h) where the model is asked for them alone, by
// steps of one micro-batch.
void CheckLeft(const Plan& plan, Diagnostics* findings);

// Parameters, moments, scalars and what a step carries on stand where the plan says, each in its
// own sharding.
void PlaceInputs(const Plan& plan, const PlanClass& rank_class, ClassCalls* calls);

// The classes that hold a block for a layer, ascending.
using BlockHolders = absl::flat_hash_map<std::pair<int, int>, std::vector<int>>;
BlockHolders FindHolders(const Plan& plan);

// After the update: every parameter, moment and gradient has been written, in its own
// sharding; gradients of tied weights have been summed once, over exactly the classes that hold
// copies.
void CheckParameters(const Plan& plan, const PlanClass& rank_class, const BlockHolders& holders,
                     ClassCalls* calls, Diagnostics* findings);

// Reports, and what a training step carries on, are scalars that every stage has and that owe
// nothing.
void CheckReports(const Plan& plan, const PlanClass& rank_class, bool eval, ClassCalls* calls,
                  Diagnostics* findings);

// Results, and what is kept for the next step, have been written in their own sharding, and owe
// nothing.
void CheckResults(const Plan& plan, const PlanClass& rank_class, ClassCalls* calls,
                  Diagnostics* findings);

// Transfers move what actions read and write at a stage's boundaries: same address, same bytes.
// `values` by stage.
void CheckTransfers(const PlanClass& rank_class, bool eval, std::vector<ChunkValues>* values,
                    Diagnostics* findings);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_ENDS_H_
