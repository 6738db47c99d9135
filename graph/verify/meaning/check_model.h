// What the proof of the meaning asks of the model in a plan, before anything is executed.

#ifndef MGC_GRAPH_VERIFY_MEANING_CHECK_MODEL_H_
#define MGC_GRAPH_VERIFY_MEANING_CHECK_MODEL_H_

#include "absl/status/status.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"

namespace mgc {

// That the model is a sound logical graph of parameters and data with a loss and a report `count`,
// both scalars that a node computes, and small enough to be looked at. Readers of plans check
// types and names only.
absl::Status CheckModel(const Graph& model);

// What a step of a shrunk plan takes to execute: products of numbers, summed over all ops, calls
// and ranks.
double WorkOfStep(const Plan& small);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_CHECK_MODEL_H_
