// Which plan is the fastest that fits: a best-first search over configurations, with the compiler
// as its oracle.
//
//   groups of candidates   bounded by the profile of a group with less parallelism
//     candidates           bounded by their own profile (passes/search/plans/bound_plan.h)
//       variants           with layers chosen for their stages
//       (passes/search/plans/choose_layers.h)
//         plans            compiled: exact memory, and the time of the event simulation
//
// Of a plan that is searched evaluation is left out, which takes room for boundaries at most
// (passes/plan/order.h); the answer is compiled whole.
//
// Looked at first is what is expected to be fastest: its bound, times how far plans of its kind
// have been above theirs. Then whatever may still be faster by its bound, until nothing may, or the
// budget ends: that leaves a gap, and says how large it may be. Deterministic: whole nanoseconds, a
// budget in plans, ties in the order of passes/search/plans/search_space.h.
//
// The shape of the search is A*'s; costs of recomputation and of memory are decided together, as in
// Galvatron (VLDB 2022), with the plan itself in place of its formulas.

#ifndef MGC_PASSES_SEARCH_PLANS_SEARCH_PLANS_H_
#define MGC_PASSES_SEARCH_PLANS_SEARCH_PLANS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"
#include "passes/search/plans/model_compilers.h"
#include "passes/search/plans/search_space.h"

namespace mgc {

struct SearchRequest {
  CompileOptions options;  // parallel: what is fixed, and the start of what is not
  FixedChoices fixed;
  ModelDims dims;
  // The logical graph of one micro-batch over all ranks along dp (model_compilers.h).
  ModelCompilers::Build build;
  // Where options.strategy cuts no parameter over tp: whether rows are chosen by dim classes
  // (passes/search/class_layout.h), for each size of tp.
  bool lay_out_unnamed = true;
  // Plans to compile, at most; as many to climb from the best, and some more for the front.
  int64_t budget = 24;
  int64_t results = 6;  // plans to rank
};

// Where the step of the busiest pipeline rank goes: all of it, but where ranks share cores; there a
// step is the work of all, and these are what one rank's would be.
struct StepParts {
  int64_t compute_ns = 0;  // forward and backward
  int64_t update_ns = 0;   // compute of the update
  // It waits, with nothing to compute, for what goes over an axis or a product of axes; over pp,
  // for boundary tensors that are made and have not arrived. The longest first.
  std::vector<std::pair<std::string, int64_t>> exposed_ns;
  int64_t bubble_ns = 0;  // it waits for other pipeline ranks

  int64_t ExposedNs() const;  // of all
};

// A plan that has been compiled, its evaluation left out.
struct FoundPlan {
  ParallelConfig config;
  int64_t step_ns = 0;
  int64_t peak_bytes = 0;      // of the fullest rank, with one workspace
  MemoryUse memory;            // of that rank
  int64_t counted_rounds = 0;  // of micro-batches, that were not simulated (passes/plan/order.h)
  StepParts parts;
  absl::optional<StrategySpec> strategy;  // where rows were chosen for it
};

// What a plan beside the best one comes to.
struct NeighbourPlan {
  ParallelConfig config;
  bool fits = false;  // some choice of layers does
  int64_t step_ns = 0;
  // Where step_ns comes from: a plan that was compiled; a bound, below which there is none; or what
  // plans of its kind have taken beside their bounds.
  enum Source : uint8_t { kCompiled, kBound, kExpected } source = kBound;
  // Of one that does not fit: what it needs at least where it computes nothing again.
  int64_t least_bytes = 0;
};

struct FoundPlans {
  std::vector<FoundPlan> ranked;  // of each mesh (tp, cp, pp) the fastest; fastest first
  // The fastest within four fifths of the memory of the one before; the first is ranked[0].
  std::vector<FoundPlan> front;
  // All that have been compiled, whether they fit or not.
  std::vector<FoundPlan> known;
  // Those that differ from ranked[0] in one choice, layers chosen for each anew.
  std::vector<NeighbourPlan> neighbours;
  int64_t candidates = 0;
  int64_t refused = 0;         // by rules of the configuration, before they were candidates
  int64_t too_large = 0;       // by memory, of those that were looked at
  int64_t profiled = 0;        // groups
  int64_t compiled = 0;        // plans
  int64_t least_bound_ns = 0;  // no candidate is faster; ranked[0].step_ns where that is proved
  std::shared_ptr<ModelCompilers> models;  // of the request's model, for more of its plans
};

// InvalidArgument where nothing is legal or nothing fits: what comes nearest, with numbers.
// Otherwise errors of Compile that are no refusals.
absl::StatusOr<FoundPlans> SearchPlans(const SearchRequest& request);

// What a search orders of a plan: enough to say how long its step takes and what it needs.
inline constexpr OrderScope kSearchScope = {/*evaluation=*/false, /*delay_reductions=*/true,
                                            /*transfers=*/false, /*all_rounds=*/false};

// The plan of a configuration, as the search compiles it: memory is no limit. Errors: those of
// Compile.
absl::StatusOr<Plan> CompileFound(const SearchRequest& request, const ParallelConfig& config);

// What it comes to; less where less is ordered (passes/plan/order.h). `plan` brings no model.
absl::StatusOr<FoundPlan> MeasureFound(const SearchRequest& request, const ParallelConfig& config,
                                       Plan* plan, OrderScope scope = {});
// One of several of the same model.
absl::StatusOr<FoundPlan> MeasureFound(ModelCompilers& models, const SearchRequest& request,
                                       const ParallelConfig& config, Plan* plan,
                                       OrderScope scope = {});

// The class whose ranks need most, one workspace included.
const PlanClass& FullestClass(const Plan& plan);

// The bytes that it needs.
int64_t PeakBytes(const Plan& plan);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_SEARCH_PLANS_H_
