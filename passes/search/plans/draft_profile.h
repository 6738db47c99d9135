// A model's profile with what a draft of a plan's step is made of (draft_step.h): the timed steps
// of its layers and their parameters one by one. It takes longer to make than the profile alone and
// is larger.

#ifndef MGC_PASSES_SEARCH_PLANS_DRAFT_PROFILE_H_
#define MGC_PASSES_SEARCH_PLANS_DRAFT_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types/mesh.h"
#include "passes/compile.h"
#include "passes/plan/time/cost.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// A layer's forward or backward as the simulation of a plan sees it.
struct LayerSteps {
  std::vector<TimedStep> steps;
  std::vector<GroupExchange> exchanges;  // by collective, over axes of the profile's mesh
  int64_t transient_bytes = 0;
};

// What a rank has of a parameter where nothing is cut over dp.
struct ParamSize {
  int64_t elements = 0;
  int64_t element_bytes = 0;
  int64_t copy_element_bytes = 0;  // of its working copy; 0: it is not cast
  int64_t states = 0;              // of the optimizer, as large as it is
};

// A layer's forward and backward, in the order that the compiler has put them into.
struct LayerOrder {
  LayerSteps forward;
  LayerSteps backward;
  // A backward whose sums of gradients are taken in turn: it adds to no accumulator.
  LayerSteps backward_in_turn;
};

// Of a layer, and of all that are alike.
struct LayerCalls {
  LayerOrder whole;   // where ranks hold parameters whole, or layers gather them in turn
  LayerOrder copied;  // where copies of pieces are made ahead, which nothing moves past
  // Sums of gradients that are owed over tp, of whole gradients.
  std::vector<GroupExchange> gradients;
  std::vector<ParamSize> params;
};

// Of a layer, or of several together. Work is what is cut where parameters are cut over dp, here
// with nothing cut and without what it takes to start the ops.
struct LayerDraft {
  std::shared_ptr<const LayerCalls> calls;  // of several: null
  int64_t update_ns = 0;
  int64_t update_ops = 0;
  int64_t casts_ns = 0;
  int64_t casts = 0;
  int64_t gathered_bytes = 0;  // of copies of all parameters, cast or not

  LayerDraft& operator+=(const LayerDraft& other);
};

struct DraftProfile {
  ModelProfile profile;
  std::vector<LayerDraft> layers;  // as those of `profile`
  Mesh mesh;
  int64_t global_bytes = 0;  // values of the whole step
  // A parameter that embedding and head have in common, whose layer is the embedding, as the head
  // sees it; without elements there is none.
  ParamSize tied;
};

// What a plan takes of a layer's calls.
const LayerSteps& ForwardOf(const LayerCalls& calls, const PlanSpread& spread);
const LayerSteps& BackwardOf(const LayerCalls& calls, const PlanSpread& spread);

// As ProfileModel.
absl::StatusOr<DraftProfile> ProfileForDrafts(ModelCompiler& model, const CompileOptions& options);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_DRAFT_PROFILE_H_
