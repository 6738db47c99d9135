#include "runtime/run/executor.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <tuple>
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

// On a device of its own a kernel is one thread's, which issues it.
struct Threads {
  int workers;
  int width;        // of them, that may work on one kernel
  int64_t kernels;  // that can run at the same time
};

Threads ThreadsFor(int64_t ranks, int workers) {
  const int width = ranks < workers ? workers : std::min(workers, kMostBesideRanks);
  return {workers, width, std::min<int64_t>(ranks, workers)};
}

Threads ThreadsOf(const ExecutorOptions& options, int64_t ranks, int workers) {
  if (options.kernels.host != KernelHost::kGpu) return ThreadsFor(ranks, workers);
  // What is issued to other processes may not return before they issue their part of it. Then each
  // rank here may have a worker that waits, and the one that the others wait for needs one too.
  if (options.process.has_value()) workers = std::max(workers, static_cast<int>(ranks));
  return {workers, 1, ranks};
}

// The most that a class states for a thread.
int64_t WorkspaceOf(const Plan& plan) {
  int64_t most = 0;
  for (const PlanClass& plan_class : plan.classes) {
    most = std::max(most, plan_class.memory.workspace);
  }
  return most;
}

// The most that a rank of each class has at a time, in any of plans of one mesh.
std::vector<int64_t> PeaksOf(absl::Span<const Plan* const> plans) {
  std::vector<int64_t> peaks(plans.front()->classes.size());
  for (const Plan* plan : plans) {
    for (size_t c = 0; c < peaks.size(); ++c) {
      peaks[c] = std::max(peaks[c], plan->classes[c].memory.peak);
    }
  }
  return peaks;
}

// Bytes of the arenas of the ranks here and of a workspace for each kernel that can run at the same
// time, as far as the numbers are believable; LoadPlan checks them singly.
int64_t MemoryOf(const Plan& plan, absl::Span<const int64_t> peaks,
                 absl::Span<const RankRange> local, int64_t workspace, const Threads& threads) {
  if (plan.classes.empty()) return 0;
  double bytes = static_cast<double>(workspace) * static_cast<double>(threads.kernels);
  for (size_t c = 0; c < peaks.size(); ++c) {
    int64_t ranks = 0;
    for (const RankRange& range : local) {
      for (int64_t rank = range.begin; rank < range.end; ++rank) {
        ranks += ClassOfRank(plan.mesh, rank) == plan.classes[c].coordinate ? 1 : 0;
      }
    }
    bytes += static_cast<double>(peaks[c]) * static_cast<double>(ranks);
  }
  constexpr double kMost = 1e18;
  return static_cast<int64_t>(std::clamp(bytes, 0.0, kMost));
}

bool IsHeldTheSame(const HeldBlock& a, const HeldBlock& b) {
  const auto fields = [](const HeldBlock& held) {
    return std::tie(held.block, held.layer, held.owner, held.param_base, held.grad_base,
                    held.state_base);
  };
  return fields(a) == fields(b);
}

// Parameters, and what is kept for the next step; what an optimizer keeps lies beside them.
bool HoldsTheSame(const ParamBlock& a, const ParamBlock& b) {
  const auto same = [](const ParamEntry& x, const ParamEntry& y) {
    return x.name == y.name && x.type == y.type && x.sharding == y.sharding &&
           x.param_offset == y.param_offset && x.states == y.states;
  };
  return a.kept == b.kept &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
}

// Whether steps of `other` find what they read of earlier steps where those of `first` leave it.
absl::Status CheckHoldsTheSame(const Plan& first, const Plan& other) {
  const auto holds_blocks = [](const PlanClass& a, const PlanClass& b) {
    return std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                      IsHeldTheSame);
  };
  const bool same = other.mesh == first.mesh &&
                    std::equal(first.classes.begin(), first.classes.end(), other.classes.begin(),
                               other.classes.end(), holds_blocks) &&
                    std::equal(first.blocks.begin(), first.blocks.end(), other.blocks.begin(),
                               other.blocks.end(), HoldsTheSame);
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "steps of another plan: its ranks are others, or it has parameters elsewhere");
}

}  // namespace

absl::Status CheckFits(const Plan& plan, KernelHost kernels_on, absl::Span<const RankRange> local,
                       int workers) {
  if (kernels_on == KernelHost::kGpu) return absl::OkStatus();
  const Host host = ReadHost();
  int64_t ranks = 0;
  for (const RankRange& range : local) ranks += range.size();
  const Threads threads = ThreadsFor(ranks, workers > 0 ? workers : host.processors);
  return CheckMemory(MemoryOf(plan, PeaksOf({&plan}), local, WorkspaceOf(plan), threads), host);
}

Executor::Executor(std::unique_ptr<LoadedPlan> loaded, const ExecutorOptions& options, int workers,
                   int width)
    : options_(options),
      first_(std::move(loaded)),
      loaded_(first_.get()),
      workers_(workers, width, options.simd_level) {}

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
  const Threads threads = ThreadsOf(options, local.size(), workers);
  const auto check_memory = [&](absl::Span<const int64_t> peaks, int64_t workspace) {
    return options.kernels.host == KernelHost::kGpu
               ? absl::OkStatus()
               : CheckMemory(MemoryOf(plan, peaks, {&local, 1}, workspace, threads), host);
  };
  MGC_RETURN_IF_ERROR(check_memory(PeaksOf({&plan}), WorkspaceOf(plan)));
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<LoadedPlan> loaded,
                       LoadPlan(plan, options.kernels, options.seed, threads.width, local));
  std::unique_ptr<Executor> executor(
      new Executor(std::move(loaded), options, threads.workers, threads.width));
  MGC_RETURN_IF_ERROR(executor->workers_.status());
  MGC_RETURN_IF_ERROR(executor->LoadOthers());
  MGC_RETURN_IF_ERROR(check_memory(executor->Peaks(), executor->workspace_bytes_));
  MGC_RETURN_IF_ERROR(executor->Allocate());
  return executor;
}

absl::Status Executor::LoadOthers() {
  for (const Plan* plan : options_.others) {
    if (Find(*plan) != nullptr) continue;
    MGC_RETURN_IF_ERROR(CheckHoldsTheSame(first_->plan, *plan));
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<LoadedPlan> loaded,
                         LoadPlan(*plan, options_.kernels, options_.seed, workers_.width(), local(),
                                  AllLoaded().back()));
    others_.push_back(std::move(loaded));
  }
  for (const LoadedPlan* loaded : AllLoaded()) {
    workspace_bytes_ = std::max(workspace_bytes_, loaded->kernels.workspace_bytes());
  }
  return absl::OkStatus();
}

std::vector<const LoadedPlan*> Executor::AllLoaded() const {
  std::vector<const LoadedPlan*> all = {first_.get()};
  for (const std::unique_ptr<LoadedPlan>& other : others_) all.push_back(other.get());
  return all;
}

std::vector<int64_t> Executor::Peaks() const {
  std::vector<const Plan*> plans;
  for (const LoadedPlan* loaded : AllLoaded()) plans.push_back(&loaded->plan);
  return PeaksOf(plans);
}

const LoadedPlan* Executor::Find(const Plan& plan) const {
  for (const LoadedPlan* loaded : AllLoaded()) {
    if (&loaded->plan == &plan) return loaded;
  }
  return nullptr;
}

absl::Status Executor::Allocate() {
  DeviceRoom room;
  room.workspace = workspace_bytes_;
  room.kernels = ThreadsOf(options_, local().size(), workers_.size()).kernels;
  const std::vector<int64_t> peaks = Peaks();
  for (int64_t rank = local().begin; rank < local().end; ++rank) {
    room.arenas.push_back(peaks[loaded_->ranks[static_cast<size_t>(rank)].rank_class]);
  }
  const absl::optional<ProcessPlace>& process = options_.process;
  if (process.has_value()) {
    room.processes = process->map->processes();
    room.ranks_before = process->ranks_before;
  }
  if (SharedRegions* const regions = arena_regions()) {
    MGC_RETURN_IF_ERROR(PlaceArenas(*regions, process->self, &room));
  }
  const DeviceFactory make =
      options_.device != nullptr ? options_.device : DeviceFactory(CpuDevice::Create);
  MGC_ASSIGN_OR_RETURN(device_, make(room, workers_));
  if (process.has_value()) MGC_RETURN_IF_ERROR(Connect(*process));
  team_ = std::make_unique<Team>(communicator_.get());
  // The last one has the groups of all.
  MGC_RETURN_IF_ERROR(device_->Open(*AllLoaded().back(), *team_));
  if (options_.progress.empty()) {
    progress_ = std::vector<RankProgress>(static_cast<size_t>(local().size()));
  }
  absl::Span<RankProgress> progress = options_.progress;
  if (progress.empty()) progress = absl::MakeSpan(progress_);
  machine_ = std::make_unique<StepMachine>(
      *loaded_, communicator_.get(), workers_, *device_, progress,
      TraceLimits{options_.trace_room, options_.trace_steps}, options_.shuffle);
  for (const LoadedPlan* loaded : AllLoaded()) machine_->MakeRoom(*loaded);
  machine_->Probe(options_.probe);
  machine_->Check(options_.check_finite);
  if (communicator_ != nullptr) {
    ticker_ = std::make_unique<Ticker>(kTick, [this] { machine_->Poll(); });
  }
  past_traces_.resize(static_cast<size_t>(local().size()));
  return absl::OkStatus();
}

void Executor::ChangeSteps(const Plan& plan) {
  if (&plan == &loaded_->plan) return;
  const LoadedPlan* const loaded = Find(plan);
  MGC_CHECK(loaded != nullptr) << "steps of a plan that the executor was not made for";
  for (int64_t rank = local().begin; rank < local().end; ++rank) {
    past_traces_[PlaceOf(rank)] = Trace(rank);
  }
  loaded_ = loaded;
  machine_->ChangeLists(*loaded);
}

// Where arenas may lie in memory of several processes; null: those of this machine do not.
SharedRegions* Executor::arena_regions() const {
  const bool on_host = options_.kernels.host != KernelHost::kGpu;
  return on_host && options_.process.has_value() ? options_.process->arenas : nullptr;
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
  if (SharedRegions* const regions = arena_regions()) {
    MGC_RETURN_IF_ERROR(regions->Publish());
    MGC_ASSIGN_OR_RETURN(means.arenas, BasesOf(*regions, process.self));
  }
  communicator_ = std::make_unique<Communicator>(AllLoaded(), *process.map, process.self,
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
  std::vector<TraceEvent> events = past_traces_[PlaceOf(rank)];
  for (const TraceBuffer* buffer : {&state.compute_trace, &state.comm_trace}) {
    const std::vector<TraceEvent> more = NamedEvents(*loaded_, state.id, *buffer);
    events.insert(events.end(), more.begin(), more.end());
  }
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
