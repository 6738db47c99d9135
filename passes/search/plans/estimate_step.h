// About how long a plan's step takes, from its model's profile: the pipeline's schedule is run with
// the times of its stages, each action behind what it needs and nothing else in its way. Sums of
// gradients and gathers of parameters run beside the layers that they belong to.
//
// What queues make wait for each other is left out, so most plans take longer, those of several
// chunks a rank most (tests/plan_search/estimate_step_test.cc). It takes a small part of what
// compiling one does, and says which to compile. It is no bound, and estimates are compared with
// estimates only.

#ifndef MGC_PASSES_SEARCH_PLANS_ESTIMATE_STEP_H_
#define MGC_PASSES_SEARCH_PLANS_ESTIMATE_STEP_H_

#include <cstdint>
#include <list>

#include "graph/types/machine.h"
#include "passes/plan/schedule.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// The lists of schedules that were asked for last.
class ScheduleCache {
 public:
  // Of a configuration that has passed CheckConfig as `checked`; until the next call.
  const PipelineSchedule& Of(const ParallelConfig& config, const CheckedConfig& checked);

 private:
  struct Built {
    ScheduleSpec spec;
    PipelineSchedule schedule;
  };

  std::list<Built> built_;  // the last one first
};

int64_t EstimateStepNs(const PlanSpread& spread, const Machine& machine, ScheduleCache* schedules);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_ESTIMATE_STEP_H_
