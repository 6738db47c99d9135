// For tests: pipelines of equal stages, made by hand. They are sound plans, which train nothing.

#ifndef MGC_PASSES_PLAN_TESTING_PIPELINE_H_
#define MGC_PASSES_PLAN_TESTING_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "passes/config/parallel_config.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

inline constexpr int64_t kUnit = 1000;  // ns that one op takes
inline constexpr int64_t kFrame = 64;   // bytes a chunk keeps per micro-batch

// How much slower communication is than compute.
struct Costs {
  const char* name;
  double overhead;   // seconds per op
  double bandwidth;  // bytes per second
  double latency;
};
inline constexpr Costs kFree = {"free", 0, 1e30, 0};
inline constexpr Costs kFastNetwork = {"fast network", kUnit * 1e-9, 1e30, 0};
inline constexpr Costs kEven = {"even", kUnit * 1e-9, 1e9, 200e-9};
inline constexpr Costs kSlowNetwork = {"slow network", kUnit * 1e-9, 1e6, 5000e-9};

Machine MachineOf(const Costs& costs);

// Each stage has one layer; forward takes one unit, backward two. With `collectives` each begins
// and ends with an all-reduce over tp. The first and the last stage share a weight.
struct Pipeline {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  Costs costs = kFastNetwork;
  bool collectives = false;
  int64_t group_size = 0;
  bool slow_end = false;  // the last stage takes twice as long forward
};
std::string NameOf(const Pipeline& pipeline);

// The model that it would be of: a layer per stage, and nothing else.
Graph ModelOf(const Pipeline& pipeline);
StagedPlan Staged(const Pipeline& pipeline);

// After schedule, order and allocate.
struct OrderedPipeline {
  Plan plan;
  SimulatedStep step;
  std::vector<int64_t> pools;
};
// Fails the running test where a pass fails, or makes what breaks its level.
OrderedPipeline MustOrder(const Pipeline& pipeline);

// Every schedule of these sizes, at these costs.
std::vector<Pipeline> Pipelines(const Costs& costs, bool collectives);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_PIPELINE_H_
