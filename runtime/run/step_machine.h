// Issues one step of the ranks here to their device, on the workers: a loop and a switch over what
// the plan has decided. What follows is of issuing; what is done, and in what order, is between the
// device's queues and their marks (runtime/run/device.h).
//
//   compute queue        actions in order; a rank that must wait gives its worker back
//   communication queue  one item at a time, in order. A collective runs when every member's queue
//                        stands at it and every member's compute queue has started it; a transfer
//                        when both ends' queues stand at it, the producing action is complete and
//                        so are the actions it comes after.
//
// Of an item whose other ends are in other processes the members here stand at it and start it; the
// communicator moves it (runtime/comm/communicator.h), or the device where that reaches so far.
//
// Timing decides only which worker does what when, never what is computed. When no queue can go on,
// nothing is in flight and not everything is done, that is a deadlock, found at once and exactly.
//
// When a kernel or an exchange fails, every rank stops at the end of its action at the latest, and
// the step with it; what each rank was at is then in its trace.

#ifndef MGC_RUNTIME_RUN_STEP_MACHINE_H_
#define MGC_RUNTIME_RUN_STEP_MACHINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/tiles.h"
#include "runtime/data/feed.h"
#include "runtime/load/load_plan.h"
#include "runtime/run/device.h"
#include "runtime/run/finite.h"
#include "runtime/run/rank.h"
#include "runtime/run/update_gate.h"
#include "runtime/run/workers.h"

namespace mgc {

struct NamedScalar {
  const char* name;
  double value;
};

// What changes from step to step.
struct StepInput {
  bool eval = false;
  bool traced = true;  // where steps are recorded (TraceLimits), this one may be
  StepData data;
  absl::Span<const NamedScalar> scalars;  // those a class does not list are left aside
};

class StepMachine : public TaskSource {
 public:
  // `communicator`: of a run in several processes, else null. `device`: of the ranks here.
  // `progress`: one per rank here. With `shuffle`, tasks are taken in a random order and ranks give
  // way at random places; results may not change.
  StepMachine(const LoadedPlan& plan, Communicator* communicator, Workers& workers, Device& device,
              absl::Span<RankProgress> progress, const TraceLimits& trace,
              absl::optional<uint64_t> shuffle);

  // For what steps of another plan are issued with; room stays.
  void MakeRoom(const LoadedPlan& plan);
  // Executor::ChangeSteps: from now on steps of these lists, for which there is room. What has been
  // recorded so far has been taken, and is gone.
  void ChangeLists(const LoadedPlan& plan);

  // Runs a step. FailedPrecondition with every rank's state and the cycle of waits after a
  // deadlock; a kernel's or an exchange's error with rank, action and instruction. The machine is
  // then of no more use, and says so by the same error.
  absl::Status Run(const StepInput& input);

  // For tests of failures: called before every instruction (`item` is null), and before every item
  // of communication for the rank that starts it; an error is one of the instruction or the item.
  using ProbeFn = std::function<absl::Status(const Rank& rank, const CommItem* item)>;
  void Probe(ProbeFn probe) { probe_ = std::move(probe); }
  // What instructions compute is looked at when the device has done it (Device::Look); one whose
  // result is not finite fails.
  void Check(FiniteCheck check) { check_ = check; }

  // Those here, ascending.
  const std::vector<Rank>& ranks() const { return ranks_; }

  // Executor::HoldUpdates and what goes with it.
  void HoldUpdates();
  void KeepHolding();
  void LetUpdates();
  int64_t held_ns() const;

  // Lets communication between processes move, unless a step has failed. Any thread, also while no
  // step runs.
  void Poll();

  int Next() override;
  void Run(int task, int worker) override;
  bool wants_help() const override { return communicator_ != nullptr && communicator_->busy(); }
  bool Help() override;

 private:
  absl::Status status() const;
  absl::Status WhereItStood(const absl::Status& drained) const;
  void Fail(const absl::Status& why);
  void TakeLists(Rank& rank);
  void Reset(Rank& rank);
  size_t PickAt(const std::vector<int>& ready) { return shuffling_ ? dice_() % ready.size() : 0; }
  int Pick(std::vector<int>* ready);
  void MakeReady(Rank& rank);

  // The compute queue. Those that return bool say whether the rank goes on; if not, it may already
  // be another worker's.
  void RunCompute(Rank& rank, int worker);
  void Begin(Rank& rank);
  bool Enter(Rank& rank);
  bool MayUpdate(Rank& rank);
  bool RunCalls(Rank& rank, int worker);
  bool Leave(Rank& rank);
  bool BeginCall(Rank& rank, const LoadedCall& call);
  void Bind(Rank& rank, const LoadedCall& call) const;
  bool RunInstr(Rank& rank, const LoadedCall& call, int worker);
  absl::Status CheckResult(const Rank& rank, const LoadedCall& call, const LoadedInstr& instr);
  absl::Status RunKernel(Rank& rank, const LoadedCall& call, const LoadedInstr& instr, int worker);
  absl::Status Load(Rank& rank, const LoadedInstr& instr);
  void Start(Rank& rank);
  bool WaitFor(Rank& rank, int64_t collectives, int64_t transfers);
  bool WaitForCollectives(Rank& rank, int64_t count, Wait why);
  bool GiveWay(Rank& rank);
  int64_t FirstSample(const Rank& rank) const;
  void Stop(Rank& rank);
  void FailInstr(Rank& rank, const LoadedCall& call, const absl::Status& why, int64_t begin_ns);
  void RecordOpenActions();

  // The communication queue. Of an item that one of several ranks leads, the others `Join` it
  // before and `Part` behind it.
  void TryItem(Rank& rank);
  void PublishItems(Rank& rank);
  void RunItem(Rank& rank);
  void RunCollective(Rank& rank, const CommItem& item);
  absl::Span<const TiledExchange> Tile(Rank& rank, const CommItem& item);
  void EndCollective(Rank& rank, const absl::Status& status);
  void FailItem(Rank& rank, const CommItem& item, const absl::Status& why);
  void RunTransfer(Rank& rank, const CommItem& item);
  void RunFarTransfer(Rank& rank, const CommItem& item);
  void EndTransfer(Rank& rank);
  bool BeginRemote();
  int TakePosted(size_t at);
  void StartRemote(Rank& rank, const CommItem& item);
  void HandOver(Rank& rank);
  void EndRemote(Rank& rank);
  void AwaitOwn(const Rank& rank);
  void Join(const Rank& lead, const Rank& rank);
  void JoinAll(const Rank& lead, const CommItem& item);
  void Part(const Rank& lead, const Rank& rank);
  Mark MarkOfItem(const Rank& rank) const;
  void FinishItem(Rank& rank);
  int PeerOf(const Rank& rank, const StepTransfer& transfer) const;
  bool IsHere(int rank) const { return plan_->local.Contains(rank); }
  Rank& Local(int rank) { return ranks_[static_cast<size_t>(rank - plan_->local.begin)]; }
  // Whether the communicator moves an item.
  bool IsRemote(const Rank& rank, const CommItem& item) const {
    if (device_.reaches_far()) return false;
    return item.transfer < 0 ? RouteOf(rank, item) != nullptr
                             : !IsHere(PeerOf(rank, rank.program->steps->transfers[item.transfer]));
  }
  absl::Span<const int> MembersHere(const Rank& rank, const CommItem& item) const;
  // Where a rank stands among those here.
  int PlaceOf(const Rank& rank) const { return static_cast<int>(rank.id - plan_->local.begin); }
  // The route of a collective that has members elsewhere, else null.
  const Route* RouteOf(const Rank& rank, const CommItem& item) const {
    return communicator_ == nullptr ? nullptr : communicator_->routes().Of(item.group, rank.id);
  }

  // Where the tiles of a collective lie: room for the most operands and a rank's largest group.
  struct CommTiles {
    std::vector<const char*> inputs;  // [operand][member], of those here
    std::vector<char*> outputs;
    std::vector<TiledExchange> exchanges;
  };

  const LoadedPlan* plan_;
  Communicator* const communicator_;
  Workers& workers_;
  Device& device_;
  std::vector<Rank> ranks_;
  std::vector<CommTiles> comm_tiles_;  // by initiating rank
  const int64_t rows_;                 // of a micro-batch
  const bool tracing_;
  const int64_t trace_steps_;
  int64_t steps_recorded_ = 0;
  bool recording_ = false;  // this step
  const bool shuffling_;
  ProbeFn probe_;
  FiniteCheck check_ = FiniteCheck::kLoss;
  StepInput input_;
  std::mutex polling_;  // held by Poll

  // Guarded by the workers' mutex.
  std::mt19937_64 dice_;
  std::vector<int> ready_compute_;  // places of ranks
  std::vector<int> ready_comm_;     // of those whose item can run
  int running_ = 0;
  int remote_ = 0;                     // items that the communicator moves
  std::atomic<int> posted_remote_{0};  // of `ready_comm_`, those that it is to move; read by all
  int finished_ = 0;
  UpdateGate gate_;
  absl::Status status_;  // of the first failure
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_STEP_MACHINE_H_
