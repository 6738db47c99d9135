#include "tools/benchmarks/training.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/types/machine.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "runtime/run/trace.h"

namespace mgc {
namespace {

constexpr int64_t kTextBytes = 1 << 20;
constexpr int64_t kTraceRoom = 1 << 16;
constexpr double kNsPerSecond = 1e9;

// Letters and spaces from a linear congruential generator (Knuth's MMIX constants).
std::string MockText() {
  std::string text;
  text.reserve(kTextBytes);
  uint64_t state = 1;
  while (text.size() < kTextBytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text.push_back("abcdefghijklmnopqrstuvwxyz      "[state >> 59]);
  }
  return text;
}

std::string WorkOf(const TraceEvent& event) {
  if (event.kind == TraceKind::kTransfer) return "transfers";
  if (event.kind == TraceKind::kCollective) return event.name.substr(0, event.name.find(' '));
  const OpDef* op = event.segment->instrs[static_cast<size_t>(event.instr)].op;
  return op == nullptr ? "data" : op->name;
}

}  // namespace

absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel,
                                  const Machine& machine) {
  CompileOptions options;
  options.parallel = parallel;
  options.machine = machine;
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       BuildModel(config, parallel.micro_batch_size * DataParallelSize(parallel),
                                  parallel.seq_length));
  return Compile(model, DimsOf(config), options);
}

absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel) {
  MGC_ASSIGN_OR_RETURN(const Machine machine, FindMachinePreset("cpu-threads"));
  return CompileModel(config, parallel, machine);
}

absl::StatusOr<std::unique_ptr<TrainingSteps>> TrainingSteps::Create(const ModelConfig& config,
                                                                     const ParallelConfig& parallel,
                                                                     const Machine& machine,
                                                                     int workers,
                                                                     const World* world) {
  MGC_ASSIGN_OR_RETURN(Plan plan, CompileModel(config, parallel, machine));
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.workers = workers;
  options.trace_room = kTraceRoom;
  if (world != nullptr) {
    options.process = world->place();
    options.progress = world->progress();
  }
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<TrainingSteps> steps,
                       Make(std::move(plan), parallel.seq_length, std::move(options)));
  if (world != nullptr) steps->ranks_ = world->ranks();
  return steps;
}

absl::StatusOr<std::unique_ptr<TrainingSteps>> TrainingSteps::CreateOn(
    const RunDevice& device, bool traced, const ModelConfig& config, const ParallelConfig& parallel,
    const Machine& machine) {
  MGC_ASSIGN_OR_RETURN(Plan plan, CompileModel(config, parallel, machine));
  TrainOptions options;
  options.kernels = device.kernels();
  options.device = device.make;
  options.workers = 1;
  options.trace_room = traced ? kTraceRoom : 0;
  return Make(std::move(plan), parallel.seq_length, std::move(options));
}

absl::StatusOr<std::unique_ptr<TrainingSteps>> TrainingSteps::Make(Plan plan, int64_t seq_length,
                                                                   TrainOptions options) {
  std::unique_ptr<TrainingSteps> steps(new TrainingSteps);
  steps->plan_ = std::move(plan);
  steps->ranks_ = {0, steps->plan_.mesh.world_size()};
  steps->workers_ = options.workers;
  MGC_ASSIGN_OR_RETURN(options.data,
                       TokenDataset::FromBytes(MockText(), seq_length, "made-up text"));
  options.lr.style = LrDecayStyle::kConstant;
  options.lr.max_lr = 1e-4;
  MGC_ASSIGN_OR_RETURN(steps->trainer_, Trainer::Create(steps->plan_, std::move(options)));
  return steps;
}

absl::StatusOr<StepTime> TrainingSteps::Step() {
  began_ns_ = NowNs();
  const Stopwatch watch;
  MGC_ASSIGN_OR_RETURN(const StepRecord record, trainer_->Step());
  const StepTime time = watch.Read();
  if (trainer_->steps_done() == 2) {
    KeepProfile();
    profile_.seconds = time.seconds;
    // Presets say nothing of the machine at hand.
    if (plan_.machine.cores > 0) profile_.predicted_seconds = record.predicted_ms.value_or(0) / 1e3;
  }
  return time;
}

std::vector<TraceEvent> TrainingSteps::LastStep(int rank) const {
  std::vector<TraceEvent> events = trainer_->executor().Trace(rank);
  events.erase(
      std::remove_if(events.begin(), events.end(),
                     [this](const TraceEvent& event) { return event.begin_ns < began_ns_; }),
      events.end());
  return events;
}

void TrainingSteps::KeepProfile() {
  const Executor& executor = trainer_->executor();
  const double cores = ranks_.size() < workers_ ? workers_ : 1;
  std::map<std::string, WorkShare> shares;
  std::set<int64_t> exchanges;
  for (int64_t rank = ranks_.begin; rank < ranks_.end; ++rank) {
    for (const TraceEvent& event : LastStep(static_cast<int>(rank))) {
      if (event.kind == TraceKind::kAction) continue;
      const bool compute = event.kind == TraceKind::kInstr;
      // Both ends record a transfer and all members a collective, with the same beginning.
      if (!compute && !exchanges.insert(event.begin_ns).second) continue;
      const std::string name = WorkOf(event);
      WorkShare& share = shares[name];
      share.name = name;
      share.seconds += static_cast<double>(event.end_ns - event.begin_ns) / kNsPerSecond * cores;
      ++share.calls;
    }
  }
  for (auto& [name, share] : shares) profile_.shares.push_back(std::move(share));
  profile_.peak_bytes = executor.MeasuredPeak();
  std::sort(profile_.shares.begin(), profile_.shares.end(),
            [](const WorkShare& a, const WorkShare& b) { return a.seconds > b.seconds; });
}

}  // namespace mgc
