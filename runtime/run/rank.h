// One rank: where its two queues stand.
//
// The compute queue runs instructions in order; the communication queue runs collectives and
// transfers in the plan's one order. They meet in counters that only grow during a step. These say
// what has been issued to the device; when it is done is told by marks (runtime/run/device.h).

#ifndef MGC_RUNTIME_RUN_RANK_H_
#define MGC_RUNTIME_RUN_RANK_H_

#include <cstdint>
#include <vector>

#include "runtime/load/load_plan.h"
#include "runtime/run/progress.h"
#include "runtime/run/trace.h"

namespace mgc {

enum class RankState : uint8_t { kReady, kRunning, kBlocked, kHeld, kFinished };

struct Rank {
  int id = 0;
  const LoadedClass* rank_class = nullptr;
  int index = 0;  // among the ranks of its class
  int place = 0;  // among those of them that are in this process

  // Of the worker that runs the compute queue; handed on under the workers' mutex.
  const LoadedProgram* program = nullptr;
  size_t action = 0;
  size_t call = 0;
  size_t instr = 0;
  bool inside = false;       // its waits are over, its calls have begun
  int64_t call_ordinal = 0;  // of the call's first collective within the step
  int64_t action_begin_ns = 0;
  int64_t free_ns = 0;  // when the last instruction ended, if nothing has come between; else 0
  std::vector<int64_t> formals;  // addresses bound by the call
  std::vector<void*> inputs;
  std::vector<void*> outputs;
  std::vector<int32_t> sample;  // of the feed
  int64_t high = 0;             // highest end address an instruction has used, over all steps
  uint64_t dice = 0;            // state of the shuffled order of tests

  // Guarded by the workers' mutex.
  RankState state = RankState::kReady;
  bool begun = false;   // this step's scalars are written, its ranges cleared
  int64_t started = 0;  // collectives handed to the communication queue
  int64_t actions_done = 0;
  int64_t collectives_done = 0;
  int64_t transfers_done = 0;
  size_t comm_next = 0;
  bool in_flight = false;  // its next communication is being run
  int64_t comm_begin_ns = 0;
  // When blocked: what must be done before it goes on.
  int64_t collectives_needed = 0;
  int64_t transfers_needed = 0;

  // Of the worker that runs a communication the rank takes part in.
  int64_t comm_high = 0;

  RankProgress* progress = nullptr;
  std::vector<int64_t> longest_ns[2];  // of each action of training and evaluation
  int64_t busy_ns = 0;                 // in instructions of this step

  TraceBuffer compute_trace{0};
  TraceBuffer comm_trace{0};

  bool Satisfied() const {
    return collectives_done >= collectives_needed && transfers_done >= transfers_needed;
  }
  void Publish(RankActivity activity, int64_t now_ns) {
    progress->activity.set(activity);
    progress->since_ns.set(now_ns);
  }
  void PublishPlace() {
    progress->action.set(static_cast<int32_t>(action));
    progress->call.set(static_cast<int32_t>(call));
    progress->instr.set(static_cast<int32_t>(instr));
    progress->inside.set(inside);
  }
  void PublishItem() {
    const CommItem* head = Head();
    progress->at_end.set(head == nullptr);
    progress->items_done.set(static_cast<int64_t>(comm_next));
    progress->in_flight.set(in_flight);
    if (head == nullptr) return;
    progress->transfer.set(head->transfer);
    progress->item_action.set(head->action);
    progress->item_call.set(head->call);
    progress->exchange.set(head->exchange);
  }
  // The next communication, or null.
  const CommItem* Head() const {
    return comm_next < program->comm.size() ? &program->comm[comm_next] : nullptr;
  }
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_RANK_H_
