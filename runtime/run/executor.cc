#include "runtime/run/executor.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/run/device_cpu.h"
#include "runtime/run/host.h"

namespace mgc {
namespace {

// Where every worker may have a rank of its own, few are idle at a time, and scratch for more of
// them in every kernel would lie there unused.
constexpr int kMostBesideRanks = 8;
// How often communication between processes is looked after while all workers compute.
constexpr auto kTick = std::chrono::milliseconds(1);

struct Threads {
  int workers;
  int width;        // of them, that may work on one kernel
  int64_t kernels;  // that can run at the same time
};

Threads ThreadsFor(int64_t ranks, int workers) {
  const int width = ranks < workers ? workers : std::min(workers, kMostBesideRanks);
  return {workers, width, std::min<int64_t>(ranks, workers)};
}

// The most that a class states for a thread.
int64_t WorkspaceOf(const Plan& plan) {
  int64_t most = 0;
  for (const PlanClass& plan_class : plan.classes) {
    most = std::max(most, plan_class.memory.workspace);
  }
  return most;
}

// Bytes of the arenas of the ranks here and of a workspace for each kernel that can run at the same
// time, as far as the numbers are believable; LoadPlan checks them singly.
int64_t MemoryOf(const Plan& plan, absl::Span<const RankRange> local, int64_t workspace,
                 const Threads& threads) {
  if (plan.classes.empty()) return 0;
  double bytes = static_cast<double>(workspace) * static_cast<double>(threads.kernels);
  for (const PlanClass& plan_class : plan.classes) {
    int64_t ranks = 0;
    for (const RankRange& range : local) {
      for (int64_t rank = range.begin; rank < range.end; ++rank) {
        ranks += ClassOfRank(plan.mesh, rank) == plan_class.coordinate ? 1 : 0;
      }
    }
    bytes += static_cast<double>(plan_class.memory.peak) * static_cast<double>(ranks);
  }
  constexpr double kMost = 1e18;
  return static_cast<int64_t>(std::clamp(bytes, 0.0, kMost));
}

}  // namespace

absl::Status CheckFits(const Plan& plan, absl::Span<const RankRange> local, int workers) {
  const Host host = ReadHost();
  int64_t ranks = 0;
  for (const RankRange& range : local) ranks += range.size();
  const Threads threads = ThreadsFor(ranks, workers > 0 ? workers : host.processors);
  return CheckMemory(MemoryOf(plan, local, WorkspaceOf(plan), threads), host);
}

Executor::Executor(std::unique_ptr<LoadedPlan> loaded, int workers, int width, SimdLevel level)
    : loaded_(std::move(loaded)), workers_(workers, width, level) {}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Plan& plan,
                                                           const ExecutorOptions& options) {
  try {
    return Make(plan, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("the system has no memory for the tables of ",
                                                     plan.mesh.world_size(), " ranks"));
  }
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Make(const Plan& plan,
                                                         const ExecutorOptions& options) {
  const Host host = ReadHost();
  const RankRange local = options.process.has_value()
                              ? options.process->map->RanksOf(options.process->self)
                              : RankRange{0, plan.mesh.world_size()};
  const int workers = options.workers > 0 ? options.workers : host.processors;
  const Threads threads = ThreadsFor(local.size(), workers);
  MGC_RETURN_IF_ERROR(CheckMemory(MemoryOf(plan, {&local, 1}, WorkspaceOf(plan), threads), host));
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<LoadedPlan> loaded,
                       LoadPlan(plan, options.kernels, options.seed, threads.width, local));
  const int64_t workspace = loaded->kernels.workspace_bytes();
  MGC_RETURN_IF_ERROR(CheckMemory(MemoryOf(plan, {&local, 1}, workspace, threads), host));
  std::unique_ptr<Executor> executor(
      new Executor(std::move(loaded), threads.workers, threads.width, options.simd_level));
  MGC_RETURN_IF_ERROR(executor->workers_.status());
  MGC_RETURN_IF_ERROR(executor->Allocate(options));
  return executor;
}

absl::Status Executor::Allocate(const ExecutorOptions& options) {
  workspace_bytes_ = loaded_->kernels.workspace_bytes();
  DeviceRoom room;
  room.workspace = workspace_bytes_;
  room.kernels = ThreadsFor(local().size(), workers_.size()).kernels;
  for (int64_t rank = local().begin; rank < local().end; ++rank) {
    const RankPlace& place = loaded_->ranks[static_cast<size_t>(rank)];
    room.arenas.push_back(plan().classes[place.rank_class].memory.peak);
  }
  if (options.process.has_value() && options.process->arenas != nullptr) {
    MGC_RETURN_IF_ERROR(PlaceArenas(*options.process->arenas, options.process->self, &room));
  }
  const DeviceFactory make =
      options.device != nullptr ? options.device : DeviceFactory(CpuDevice::Create);
  MGC_ASSIGN_OR_RETURN(device_, make(room, workers_));
  if (options.process.has_value()) MGC_RETURN_IF_ERROR(Connect(*options.process));
  team_ = std::make_unique<Team>(communicator_.get());
  absl::Span<RankProgress> progress = options.progress;
  if (progress.empty()) {
    progress_ = std::vector<RankProgress>(static_cast<size_t>(local().size()));
    progress = absl::MakeSpan(progress_);
  }
  machine_ = std::make_unique<StepMachine>(
      *loaded_, communicator_.get(), workers_, *device_, progress,
      TraceLimits{options.trace_room, options.trace_steps}, options.shuffle);
  machine_->Probe(options.probe);
  machine_->Check(options.check_finite);
  if (communicator_ != nullptr) {
    ticker_ = std::make_unique<Ticker>(kTick, [this] { machine_->Poll(); });
  }
  return absl::OkStatus();
}

// Lets the arenas lie in a region that near processes can reach, where there are any.
absl::Status Executor::PlaceArenas(SharedRegions& regions, int self, DeviceRoom* room) const {
  if (!ReachesOthers(regions, self)) return absl::OkStatus();
  int64_t bytes = 0;
  std::vector<int64_t> begins;
  for (int64_t arena : room->arenas) {
    begins.push_back(bytes);
    bytes += WholePages(arena);
  }
  MGC_ASSIGN_OR_RETURN(char* const memory, regions.Make(bytes));
  for (int64_t begin : begins) room->places.push_back(memory + begin);
  return absl::OkStatus();
}

absl::Status Executor::Connect(const ProcessPlace& process) {
  FlowMeans means;
  means.library = process.library;
  means.parallel = &workers_;
  if (process.arenas != nullptr) {
    MGC_RETURN_IF_ERROR(process.arenas->Publish());
    MGC_ASSIGN_OR_RETURN(means.arenas, BasesOf(*process.arenas, process.self));
  }
  communicator_ = std::make_unique<Communicator>(*loaded_, *process.map, process.self,
                                                 *process.link, std::move(means));
  return communicator_->Open();
}

absl::Status Executor::Run(const StepInput& input) {
  if (input.eval && !has_eval()) {
    return absl::FailedPreconditionError("the plan has no evaluation program");
  }
  MGC_RETURN_IF_ERROR(CheckFed(plan(), loaded_->inputs, input.data));
  return machine_->Run(input);
}

bool Executor::has_eval() const {
  return std::any_of(plan().classes.begin(), plan().classes.end(),
                     [](const PlanClass& c) { return !c.eval.compute.empty(); });
}

absl::StatusOr<double> Executor::Report(absl::string_view name, bool eval) const {
  for (const LoadedClass& loaded : loaded_->classes) {
    if (loaded.local.empty()) continue;
    const PlanClass& plan_class = *loaded.plan_class;
    for (const NamedAddress& report : eval ? plan_class.eval_reports : plan_class.reports) {
      if (report.name != name) continue;
      double value = 0;
      Get(loaded.local[0], report.address, sizeof(value), &value);
      return value;
    }
  }
  return absl::NotFoundError(absl::StrCat("the plan reports no `", name, "`"));
}

void Executor::Put(int64_t rank, int64_t address, int64_t bytes,
                   absl::FunctionRef<void(char* to)> fill) {
  device_->Put(ComputeQueue(static_cast<int>(PlaceOf(rank))), address, bytes, fill);
}

void Executor::Get(int64_t rank, int64_t address, int64_t bytes, void* to) const {
  device_->Get(static_cast<int>(PlaceOf(rank)), address, bytes, to);
}

int64_t Executor::MeasuredPeak(int64_t rank) const {
  const Rank& state = machine_->ranks()[PlaceOf(rank)];
  // A slot takes whole units, as the plan counts it; its tile may end before.
  return AlignUp(std::max(state.high, state.comm_high));
}

int64_t Executor::MeasuredPeak() const {
  int64_t peak = 0;
  for (int64_t rank = local().begin; rank < local().end; ++rank) {
    peak = std::max(peak, MeasuredPeak(rank));
  }
  return peak;
}

std::vector<TraceEvent> Executor::Trace(int64_t rank) const {
  const Rank& state = machine_->ranks()[PlaceOf(rank)];
  std::vector<TraceEvent> events = NamedEvents(*loaded_, state.id, state.compute_trace);
  const std::vector<TraceEvent> comm = NamedEvents(*loaded_, state.id, state.comm_trace);
  events.insert(events.end(), comm.begin(), comm.end());
  return events;
}

int64_t Executor::dropped_trace_records() const {
  int64_t dropped = 0;
  for (const Rank& rank : machine_->ranks()) {
    dropped += rank.compute_trace.dropped() + rank.comm_trace.dropped();
  }
  return dropped;
}

}  // namespace mgc
