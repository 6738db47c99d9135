#include "passes/plan/forms/compute_list.h"

namespace mgc {

std::vector<OrderedAction> ComputeList(const std::vector<ScheduleAction>& actions,
                                       const std::vector<StagePlace>& stages,
                                       const std::vector<StagedChunk>& chunks, bool backward) {
  std::vector<OrderedAction> list;
  for (size_t k = 0; k < chunks.size(); ++k) {
    if (chunks[k].prepare.empty()) continue;
    OrderedAction prepare;
    prepare.ref = {ActionKind::kPrepare, static_cast<int>(k), 0};
    list.push_back(prepare);
  }
  for (const ScheduleAction& scheduled : actions) {
    const bool forward = scheduled.kind == ScheduleActionKind::kForward;
    if (!forward && !backward) continue;
    OrderedAction action;
    action.ref.kind = forward ? ActionKind::kForward : ActionKind::kBackward;
    action.ref.chunk = stages[scheduled.stage].chunk;
    action.ref.micro_batch = scheduled.micro_batch;
    list.push_back(action);
  }
  OrderedAction update;
  update.ref.kind = ActionKind::kUpdate;
  list.push_back(update);
  return list;
}

}  // namespace mgc
