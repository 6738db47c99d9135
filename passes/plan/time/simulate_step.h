// The event simulation behind order: one compute and one communication queue per class.

#ifndef MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_
#define MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_

#include <cstdint>
#include <deque>
#include <queue>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/cost.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// What one class brings to a simulation.
struct SimulatedClass {
  const std::vector<StagedChunk>* chunks = nullptr;
  const std::vector<StagedCall>* update = nullptr;
  OrderedProgram* program = nullptr;  // compute in order; transfers, slots and waits are filled in
};

// What all classes share.
struct SimulationSpec {
  CostModel costs;
  const std::vector<Segment>& segments;
  const std::vector<StagePlace>& stages;
  int64_t micro_batches = 1;
};

class StepSimulator {
 public:
  // What `spec` refers to outlives the simulator.
  StepSimulator(const SimulationSpec& spec, std::vector<SimulatedClass> classes, bool keep_spans);

  // FailedPrecondition when the compute lists wait for each other in a circle.
  absl::StatusOr<SimulatedStep> Run();
  int pool_size(int coordinate) const { return static_cast<int>(states_[coordinate].pool.size()); }

 private:
  struct PendingCollective {
    int action = 0;
    int index = 0;  // within the action
    int64_t ready = 0;
    int64_t ns = 0;
    bool update = false;
    bool background = false;
  };
  struct PendingTransfer {
    int src = 0;
    int dst = 0;
    int channel = 0;
    TransferRef send;
    TransferRef recv;
    int64_t ready = 0;
    int64_t ns = 0;
    int consumer = 0;  // action of dst
    int64_t src_slot = 0;
    int64_t dst_slot = 0;
    int64_t began = 0;
  };
  // One boundary in one direction. Its transfers wait in line: only the first may start.
  struct Channel {
    int64_t bytes = 0;  // of its bundle; 0: nothing crosses
    int src = 0;
    int dst = 0;
    int64_t ns = 0;           // duration of one
    int outboxes = 0;         // computed and not yet across
    std::deque<int> pending;  // indices into transfers_
  };
  // A slot of the boundary pool, and who used it last.
  struct PoolSlot {
    bool has_action = false;
    bool has_transfer = false;
    ActionRef action;
    TransferRef transfer;
  };
  // Where a class is, in its lists and in time.
  struct ClassState {
    std::vector<std::vector<TimedStep>> steps;  // by chunk and list (ListsOf); update last
    std::vector<PoolSlot> pool;
    std::set<int64_t> free_slots;
    std::deque<PendingCollective> collectives;
    std::vector<int> channels;  // that end here, indices into channels_
    int pending_transfers = 0;
    int action = 0;
    int step = -1;  // -1: the action has not begun
    bool running = false;
    int64_t began = 0;
    int64_t queue_free = 0;
    int64_t run_end = 0;     // of the compute step that runs
    int background = 0;      // collectives in the background: requested and not done
    std::vector<bool> done;  // collectives of the current action
    // The last collective placed in the order: how many of which action.
    int placed_action = 0;
    int placed = 0;
    int64_t busy = 0;
    int64_t update = 0;                        // of busy
    int64_t blocked_from = -1;                 // it waits for collectives since; -1: it does not
    std::vector<std::vector<int64_t>> inputs;  // [chunk][micro-batch]: slot received into, or -1
    std::vector<std::vector<int64_t>> grad_inputs;  // likewise
  };
  struct Event {
    int64_t time;
    int64_t sequence;
    enum Kind : uint8_t { kCompute, kCollectiveDone, kBackgroundDone, kTransferDone } kind;
    int rank_class;
    int index;   // transfer, or collective within its action
    int action;  // of the collective
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  void PrepareClass(int c);
  void PrepareChannels();
  const std::vector<TimedStep>& StepsOf(int c, const ActionRef& ref) const;
  void Push(int64_t time, Event::Kind kind, int rank_class, int index, int action);
  void Advance(int c, int64_t now);
  bool BeginAction(int c, int64_t now);
  bool IsBackedUp(int stage, bool forward) const;
  int ChannelFrom(int stage, bool forward) const { return forward ? stage : num_stages_ + stage; }
  bool Leaves(int stage, bool forward) const {
    return channels_[ChannelFrom(stage, forward)].bytes > 0;
  }
  bool Takes(int stage, bool forward) const;
  bool IsHeldBack(int c, const TimedStep& step, int64_t now);
  void EndAction(int c, int64_t now);
  bool HandOver(int c, const OrderedAction& action, bool forward);
  void AskForTransfer(int c, const OrderedAction& action, bool forward, int64_t now);
  void TryStart(int c, int64_t now);
  bool GoesBefore(int c, int best, int64_t now) const;
  int64_t NeededOn(int c, int64_t now) const;
  int64_t DueOn(int channel, int64_t now) const;
  bool MayStart(const PendingTransfer& transfer, int64_t now) const;
  void StartTransfer(int t, int64_t now);
  void FinishTransfer(PendingTransfer t, int64_t now);  // by value: it may add transfers
  void RecordTransfer(int c, const PendingTransfer& transfer, bool send);
  int64_t TakeSlot(int c, PoolSlot* last);
  void Span(int c, bool communication, std::string name, int64_t begin, int64_t end);

  const SimulationSpec spec_;
  std::vector<SimulatedClass> classes_;
  const int num_stages_;
  const bool keep_spans_;
  std::vector<ClassState> states_;
  std::vector<PendingTransfer> transfers_;
  std::vector<Channel> channels_;  // by ChannelFrom
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  // Position in its class' compute list of every forward and backward: [class][kind][chunk][mb].
  std::vector<std::vector<std::vector<std::vector<int>>>> position_;
  int64_t sequence_ = 0;
  SimulatedStep result_;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_
