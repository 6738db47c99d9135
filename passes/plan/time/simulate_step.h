// The event simulation behind order: one compute and one communication queue per class.
//
// Events at one time are taken by class. While no transfer can touch a class' queues, its steps are
// passed at one go (quiet_steps.h); whatever then wants to touch them interrupts that, and finds
// the class as if each step had been an event. With spans each step is one.

#ifndef MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_
#define MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/time/cost.h"
#include "passes/plan/time/quiet_steps.h"
#include "passes/plan/time/segment_timer.h"
#include "passes/plan/time/simulated_step.h"

namespace mgc {

// Outboxes of a stage towards one neighbour, where it is alone on its rank: one is written while
// the other crosses.
inline constexpr int kMaxOutboxes = 2;

// What one class brings to a simulation.
struct SimulatedClass {
  const std::vector<StagedChunk>* chunks = nullptr;
  const std::vector<StagedCall>* update = nullptr;
  OrderedProgram* program = nullptr;  // compute in order; transfers, slots and waits are filled in
};

// What all classes share.
struct SimulationSpec {
  SegmentTimer& timer;
  const std::vector<StagePlace>& stages;
  int64_t micro_batches = 1;
  bool lists_transfers = true;  // in programs, with who waits for them
  // Of every bundle that crosses a boundary; nothing: what calls reach behind it.
  absl::optional<int64_t> boundary_bytes = absl::nullopt;
  int64_t round = 0;  // micro-batches of a round that is marked; 0: none is
};

class StepSimulator {
 public:
  // What `spec` refers to outlives the simulator.
  StepSimulator(const SimulationSpec& spec, std::vector<SimulatedClass> classes, bool keep_spans);

  // FailedPrecondition when the compute lists wait for each other in a circle.
  absl::StatusOr<SimulatedStep> Run();

  // Runs as far as it goes before it matters what last backwards call.
  absl::Status RunToLastBackward();
  // This one as it stands then, with `classes` that differ in what last backwards call alone; their
  // programs are copies of its own.
  StepSimulator With(std::vector<SimulatedClass> classes) const;

  int pool_size(int coordinate) const { return static_cast<int>(states_[coordinate].pool.size()); }

 private:
  struct PendingCollective {
    int action = 0;
    int index = 0;  // within the action
    int64_t ready = 0;
    int64_t ns = 0;
    bool update = false;
    bool background = false;
    AxisSet axes = {};
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
    int64_t ns = 0;     // duration of one
    int src_place = 0;  // among the channels of src, and of dst
    int dst_place = 0;
    int outboxes = 0;         // computed and not yet across
    std::deque<int> pending;  // indices into transfers_
  };
  // Steps that are passed at one go, from one point to its `until`.
  struct QuietRun {
    size_t from = 0;  // point
    int64_t began = 0;
  };
  // Steps of a quiet run that are taken one by one after all.
  struct Replayed {
    int64_t at = 0;
    int64_t queue_free = 0;
    std::vector<std::pair<int, int64_t>> ends;  // of collectives
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
    std::vector<QuietSteps> quiet_steps;        // likewise, without update; none with spans
    std::vector<PoolSlot> pool;
    std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>> free_slots;
    std::deque<PendingCollective> collectives;
    std::vector<int> channels;  // that end here, indices into channels_
    std::vector<int> asked;     // of those, by place, the ones with pending transfers; ascending
    std::vector<int> sources;   // the classes that they come from
    int pending_transfers = 0;
    int action = 0;
    int step = -1;          // -1: the action has not begun
    int last_backward = 0;  // the first action that is one
    int near_last = 0;      // no single event brings it there from before this action
    bool running = false;
    int64_t began = 0;
    int64_t ended = 0;  // the last action
    int64_t queue_free = 0;
    int64_t run_end = 0;      // of the compute step that runs
    int background = 0;       // collectives in the background: requested and not done
    AxisSet background_axes;  // of the one among them that was placed last
    absl::optional<QuietRun> quiet;
    int quiet_runs = 0;
    std::vector<int> done;  // by collective of an action: the last action in which it was done
    // The last collective placed in the order: how many of which action.
    int placed_action = 0;
    int placed = 0;
    int64_t busy = 0;
    int64_t update = 0;                // of busy
    int64_t blocked_from = -1;         // it waits for collectives since; -1: it does not
    std::vector<int64_t> inputs;       // by IndexOf: slot received into, or -1
    std::vector<int64_t> grad_inputs;  // likewise
    std::vector<int> forwards;         // by IndexOf: their places in the compute list
    std::vector<int> backwards;        // likewise
  };
  struct Event {
    int64_t time;
    int rank_class;
    enum Kind : uint8_t {
      kCompute,
      kQuietDone,
      kCollectiveDone,
      kBackgroundDone,
      kTransferDone
    } kind;
    int index;   // transfer, collective within its action, or number of the quiet run
    int action;  // of the collective
    bool operator>(const Event& other) const {
      return std::tie(time, rank_class, kind, index, action) >
             std::tie(other.time, other.rank_class, other.kind, other.index, other.action);
    }
  };

  // Of a forward or backward of a class, among all of its chunks and micro-batches.
  size_t IndexOf(int chunk, int64_t micro_batch) const {
    return static_cast<size_t>(chunk * spec_.micro_batches + micro_batch);
  }
  void PrepareClass(int c);
  void PrepareList(int c, size_t list, const std::vector<StagedCall>& calls);
  void FindLastBackward(int c);
  void PrepareChannels();
  int64_t BundleBytes(int stage, bool forward) const;
  size_t ListOfSteps(int c, const ActionRef& ref) const;
  const std::vector<TimedStep>& StepsOf(int c, const ActionRef& ref) const {
    return states_[static_cast<size_t>(c)].steps[ListOfSteps(c, ref)];
  }
  const ActionRef& RefOf(int c) const;
  const QuietSteps& QuietOf(int c) const;
  absl::Status RunEvents(bool to_last_backward);
  bool HandleEvent(const Event& event);
  void Push(int64_t time, Event::Kind kind, int rank_class, int index, int action);
  void Advance(int c, int64_t now);
  int64_t PassRuns(int c, const std::vector<TimedStep>& steps);
  bool BeginQuiet(int c, int64_t now);
  void PassQuiet(int c, size_t until);
  void Interrupt(int c, int64_t now);
  void Replay(int c, int64_t at, int end, int64_t now);
  void ReplayStart(int c, const TimedStep& step, int64_t now, Replayed* replayed);
  bool ReplayRun(int c, const TimedStep& step, int64_t now, Replayed* replayed);
  bool ReplayWait(int c, const TimedStep& step, int64_t now, Replayed* replayed);
  // Whether events of a class at `time` come before the one that is handled `now`.
  bool IsPast(int c, int64_t time, int64_t now) const {
    return time < now || (time == now && c < current_class_);
  }
  bool BeginAction(int c, int64_t now);
  void MarkRound(int c, const ActionRef& ref, int64_t now);
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
  bool GoesBefore(int c, int best, int64_t now);
  void PlaceCollective(int c, int action, int64_t ns);
  int64_t NeededOn(int c, int64_t now) const;
  int64_t DueFrom(int src, int c, int64_t now);
  void SetAsked(const Channel& channel, bool asked);
  // Whether a transfer of a class waits for nothing but queues.
  bool IsAsked(const ClassState& state) const;
  // Whether the receiver has come so far that a transfer may start.
  bool IsAwaited(const PendingTransfer& transfer) const {
    return states_[static_cast<size_t>(transfer.dst)].action >= transfer.consumer - 1;
  }
  bool MayStart(const PendingTransfer& transfer, int64_t now);
  void StartTransfer(int t, int64_t now);
  void FinishTransfer(PendingTransfer t, int64_t now);  // by value: its entry may be taken again
  void RecordTransfer(int c, const PendingTransfer& transfer, bool send);
  int64_t TakeSlot(int c, PoolSlot* last);
  void Span(int c, bool communication, std::string name, int64_t begin, int64_t end);

  const SimulationSpec spec_;
  std::vector<SimulatedClass> classes_;
  const int num_stages_;
  const bool keep_spans_;
  std::vector<ClassState> states_;
  std::vector<PendingTransfer> transfers_;
  std::vector<int> free_transfers_;  // entries there that have ended
  std::vector<Channel> channels_;    // by ChannelFrom
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  int current_class_ = 0;   // of the event that is handled
  bool near_last_ = false;  // whether some class is at its near_last, or behind it
  SimulatedStep result_;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_SIMULATE_STEP_H_
