#include "tools/views/step_work.h"

#include <map>
#include <vector>

#include "graph/types/tensor_type.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

void Add(const PlanWork& one, double times, PlanWork* sum) {
  sum->flops += times * one.flops;
  sum->device_seconds += times * one.device_seconds;
}

PlanWork WorkOf(const Plan& plan, const Segment& segment) {
  PlanWork work;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind != InstrKind::kCompute) continue;
    const double flops = FlopsOf(plan.mesh, segment, instr);
    const ComputeRate& rate = plan.machine.RateOf(NameOf(ComputedIn(segment, instr)));
    Add({flops, flops / rate.flops}, 1, &work);
  }
  return work;
}

}  // namespace

PlanWork WorkOf(const Plan& plan) {
  std::vector<PlanWork> segments;
  segments.reserve(plan.segments.size());
  for (const Segment& segment : plan.segments) segments.push_back(WorkOf(plan, segment));
  std::map<const std::vector<Call>*, PlanWork> lists;
  PlanWork work;
  for (const PlanClass& plan_class : plan.classes) {
    const auto ranks = static_cast<double>(RanksOfClass(plan, plan_class.coordinate).size());
    for (const Action& action : plan_class.train.compute) {
      const std::vector<Call>& calls = CallsOf(plan, plan_class, /*eval=*/false, action.ref);
      const auto [list, fresh] = lists.try_emplace(&calls);
      if (fresh) {
        for (const Call& call : calls) {
          Add(segments[static_cast<size_t>(call.segment)], 1, &list->second);
        }
      }
      Add(list->second, ranks, &work);
    }
  }
  return work;
}

}  // namespace mgc
