#include "passes/plan/forms/compute_list.h"

namespace mgc {

std::vector<OrderedAction> ComputeList(const std::vector<ScheduleAction>& actions,
                                       const std::vector<StagePlace>& stages, int64_t micro_batches,
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
    const bool last = !forward && scheduled.micro_batch == micro_batches - 1;
    if (!last || chunks[action.ref.chunk].reduce.empty()) continue;
    OrderedAction reduce;
    reduce.ref = {ActionKind::kReduceGrad, action.ref.chunk, scheduled.micro_batch};
    list.push_back(reduce);
  }
  OrderedAction update;
  update.ref.kind = ActionKind::kUpdate;
  update.waits_for_reductions = backward;
  list.push_back(update);
  return list;
}

}  // namespace mgc
