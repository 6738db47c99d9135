// A plan's training step as its simulation sees it (passes/plan/time/simulate_step.h), made of a
// profile instead of a graph: the same calls in the same order, with what they take. Gathers of
// parameters, sums of gradients and the update, which a profile lacks, are made as
// passes/plan/stage makes them: one of each a layer.

#ifndef MGC_PASSES_SEARCH_PLANS_DRAFT_STEP_H_
#define MGC_PASSES_SEARCH_PLANS_DRAFT_STEP_H_

#include <vector>

#include "graph/types/machine.h"
#include "graph/types/mesh.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/cost.h"
#include "passes/search/plans/draft_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

struct DraftStep {
  Mesh mesh;
  TimedSegments segments;
  std::vector<std::vector<StagedChunk>> chunks;  // by class; calls without bindings
  std::vector<std::vector<StagedCall>> updates;  // by class
};

// `spread` is of the draft's profile.
DraftStep DraftStepOf(const DraftProfile& draft, const PlanSpread& spread, const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_DRAFT_STEP_H_
