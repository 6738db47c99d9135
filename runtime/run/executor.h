// Runs a plan: all of its ranks in this process, or some of them, cooperatively, on a few workers.
//
// Create resolves and checks the plan, then has a device made with one arena per rank here and, for
// each kernel that can run at the same time, the scratch that kernels ask for; no step allocates.
// What is in the arenas (parameters, gradients, scalars) is reached by the addresses the plan
// gives.

#ifndef MGC_RUNTIME_RUN_EXECUTOR_H_
#define MGC_RUNTIME_RUN_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "kernels/kernel.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/shared_regions.h"
#include "runtime/comm/team.h"
#include "runtime/load/load_plan.h"
#include "runtime/run/device.h"
#include "runtime/run/step_machine.h"
#include "runtime/run/ticker.h"
#include "runtime/run/trace.h"
#include "runtime/run/workers.h"

namespace mgc {

// One process of a run in several.
struct ProcessPlace {
  const ProcessMap* map = nullptr;
  int self = 0;
  Link* link = nullptr;  // to the others, not yet open
  // Memory for the arenas, with none made yet: what processes that reach each other have in common
  // need not be sent. Null: arenas are private.
  SharedRegions* arenas = nullptr;
  AllReduceLibrary* library = nullptr;  // not yet open, that does the all-reduces; null: mgc does
  int64_t ranks_before = 0;             // of processes of this host that come before it
};

struct ExecutorOptions {
  KernelList kernels;
  int workers = 0;                         // 0: one for each processor this process may use
  SimdLevel simd_level = BestSimdLevel();  // of the kernels; the same in all processes
  absl::optional<ProcessPlace> process;    // without: all ranks are here
  // That the ranks are on; empty: a CpuDevice. Its arenas and scratch are of this machine's memory
  // unless its kernels are a GPU's.
  DeviceFactory device;
  // That steps will change to; they outlive the executor. Each is the first plan with fewer
  // micro-batches (graph/plan/fewer_micro_batches.h), or another of its model that finds parameters
  // and what is kept for them at the same addresses.
  std::vector<const Plan*> others;
  uint64_t seed = 0;       // of what is random in kernels (dropout)
  int64_t trace_room = 0;  // records kept per rank and queue; 0: no trace
  // Of a trace: the steps recorded, from the first, evaluations too; of later ones only what
  // failed.
  int64_t trace_steps = std::numeric_limits<int64_t>::max();
  // Where the ranks here publish what they are at; empty: nowhere that others could read.
  absl::Span<RankProgress> progress;
  FiniteCheck check_finite = FiniteCheck::kLoss;
  // For tests of failures: StepMachine::Probe.
  StepMachine::ProbeFn probe;
  // For tests: runs tasks in an order drawn with this seed. Results must not depend on it.
  absl::optional<uint64_t> shuffle;
};

// ResourceExhausted when the arenas of the ranks `local` and, for each kernel that `workers` (as in
// ExecutorOptions) run at the same time, the scratch of one thread exceed this machine's memory.
// Believes the plan's numbers and needs no more than these: a plan that is far too large need not
// be proved first. Ranks on GPUs need none of it here: their device is asked when it is made.
absl::Status CheckFits(const Plan& plan, KernelHost kernels_on, absl::Span<const RankRange> local,
                       int workers);

class Executor {
 public:
  // `plan` must outlive the executor. Errors of LoadPlan; InvalidArgument where another plan's
  // ranks or addresses are others; ResourceExhausted when the ranks' arenas, as large as the most
  // that any of the plans needs, and the workspaces exceed the memory this process can get
  // (runtime/run/host.h), or the system gives too few threads.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Plan& plan,
                                                          const ExecutorOptions& options);

  // Runs one training or evaluation step on all ranks. FailedPrecondition after a deadlock (with
  // every rank's state), or for an evaluation that the plan has no program for; the error of a
  // kernel or an exchange, with rank, action and instruction. After any of them but the missing
  // program the executor repeats it; what has run is in the trace.
  absl::Status Run(const StepInput& input);

  // Between steps: from now on runs those of `plan`, the first one or one of the options' others.
  // What is in the arenas stays. All processes call it.
  void ChangeSteps(const Plan& plan);

  // Between steps: until LetUpdates, which any thread may call, no rank here begins its update. A
  // step that comes so far waits; an evaluation does not.
  void HoldUpdates() { machine_->HoldUpdates(); }
  void LetUpdates() { machine_->LetUpdates(); }
  // From the thread that will let them go: it comes on, and is not stuck
  // (runtime/watch/watchdog.h).
  void KeepHolding() { machine_->KeepHolding(); }
  // How long the first rank here has waited since updates were last held.
  int64_t held_ns() const { return machine_->held_ns(); }

  // A number of the last step, from the first rank here that has it. NotFound when no rank reports
  // it.
  absl::StatusOr<double> Report(absl::string_view name, bool eval) const;

  const Plan& plan() const { return first_->plan; }
  // Whose steps run: plan(), or what ChangeSteps was given last. Between steps.
  const Plan& steps() const { return loaded_->plan; }
  bool has_eval() const;
  // The ranks here.
  const RankRange& local() const { return first_->local; }
  // Of a run in several processes, else null.
  Communicator* communicator() const { return communicator_.get(); }
  // The processes of the run, to be used between steps.
  Team& team() const { return *team_; }
  // What belongs to a rank is asked for of ranks here.
  // Writes bytes of an arena: `fill` all of them, before it returns; the next step finds them.
  void Put(int64_t rank, int64_t address, int64_t bytes, absl::FunctionRef<void(char* to)> fill);
  // Reads bytes as the last step, and what was put since, has left them. Any thread; while a step
  // runs only parameters, states and carried numbers, with updates held.
  void Get(int64_t rank, int64_t address, int64_t bytes, void* to) const;
  Workers& workers() { return workers_; }
  const Workers& workers() const { return workers_; }
  int num_workers() const { return workers_.size(); }

  // Highest end address in use so far, of one rank and of the rank here where it is highest.
  int64_t MeasuredPeak(int64_t rank) const;
  int64_t MeasuredPeak() const;
  // Scratch of one kernel and all threads that may work on it: what the greediest one asks for.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // What has been recorded of a rank, the compute queue before the communication queue.
  std::vector<TraceEvent> Trace(int64_t rank) const;
  int64_t dropped_trace_records() const;

 private:
  Executor(std::unique_ptr<LoadedPlan> loaded, const ExecutorOptions& options, int workers,
           int width);
  // Create, but for lack of memory in the tables.
  static absl::StatusOr<std::unique_ptr<Executor>> Make(const Plan& plan,
                                                        const ExecutorOptions& options);
  absl::Status Allocate();
  absl::Status LoadOthers();
  // All plans, the first one before the others.
  std::vector<const LoadedPlan*> AllLoaded() const;
  // By class, of all plans: the size of arenas.
  std::vector<int64_t> Peaks() const;
  const LoadedPlan* Find(const Plan& plan) const;  // null where it is none of them
  SharedRegions* arena_regions() const;
  absl::Status PlaceArenas(SharedRegions& regions, int self, DeviceRoom* room) const;
  absl::Status Connect(const ProcessPlace& process);
  size_t PlaceOf(int64_t rank) const { return static_cast<size_t>(rank - local().begin); }

  const ExecutorOptions options_;
  const std::unique_ptr<LoadedPlan> first_;
  std::vector<std::unique_ptr<LoadedPlan>> others_;  // as the options have them
  const LoadedPlan* loaded_;                         // of all of them, what steps run
  std::unique_ptr<Communicator> communicator_;       // of a run in several processes
  std::unique_ptr<Team> team_;
  std::vector<RankProgress> progress_;  // where the options give none
  int64_t workspace_bytes_ = 0;
  Workers workers_;
  std::unique_ptr<Device> device_;
  std::vector<std::vector<TraceEvent>> past_traces_;  // of other plans' steps, by rank here
  std::unique_ptr<StepMachine> machine_;
  std::unique_ptr<Ticker> ticker_;  // of a run in several processes
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_EXECUTOR_H_
