// Steps in which a kernel or an exchange fails: what is said, what is recorded, and that the rest
// stops.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/run/device_cpu.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr int64_t kFailingSample = 8;  // the first of micro-batch 2

class FailingKernel : public Kernel {
 public:
  absl::Status Run(const KernelRun& run, Parallel& /*parallel*/) const override {
    if (run.first_sample != kFailingSample) return absl::OkStatus();
    return absl::UnavailableError("the device is gone");
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeFailing(const KernelSpec& /*spec*/) {
  return std::make_unique<FailingKernel>();
}

std::vector<KernelEntry> KernelsWithFailing(absl::string_view op) {
  std::vector<KernelEntry> kernels = ReferenceKernels();
  for (KernelEntry& entry : kernels) {
    if (entry.op == op) entry.make = MakeFailing;
  }
  return kernels;
}

struct Step {
  TokenDataset data = *TokenDataset::FromBytes(std::string(1000, 'a'), 6, "data");
  NamedScalar rate{"lr", 0.05};

  StepInput input() const {
    StepInput input;
    input.data = {&data, 0, 1000};
    input.scalars = absl::MakeConstSpan(&rate, 1);
    return input;
  }
};

bool Has(const std::vector<TraceEvent>& events, absl::string_view name) {
  return std::any_of(events.begin(), events.end(),
                     [name](const TraceEvent& event) { return event.name == name; });
}

// `total` runs on the last stage only, in the segment `loss`.
TEST(FailingStep, SaysRankActionAndInstruction) {
  ChainOptions options;
  options.pp = 2;
  const Plan plan = ChainPlan(options);
  const std::vector<KernelEntry> kernels = KernelsWithFailing("total");
  for (int workers : {1, 3}) {
    ExecutorOptions executor_options;
    executor_options.kernels = kernels;
    executor_options.workers = workers;
    const auto executor = Executor::Create(plan, executor_options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    const Step step;
    const absl::Status status = (*executor)->Run(step.input());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::string(status.message()),
              "rank 1 (pp 1), 1F2, loss[4] total layer 1: the device is gone\n"
              "     loss[2] loss = accumulate(loss, half)\n"
              "     loss[3] weights = load\n"
              "  -> loss[4] count = total(weights)\n"
              "     loss[5] tokens = accumulate(tokens, count)");
    EXPECT_EQ((*executor)->Run(step.input()), status) << "a failed executor runs again";
  }
}

TEST(FailingStep, RecordsWhatEveryRankWasAt) {
  ChainOptions options;
  options.pp = 2;
  const Plan plan = ChainPlan(options);
  const std::vector<KernelEntry> kernels = KernelsWithFailing("total");
  for (int64_t room : {1, 4096}) {  // what failed is recorded where there is no room left, too
    ExecutorOptions executor_options;
    executor_options.kernels = kernels;
    executor_options.workers = 2;
    executor_options.trace_room = room;
    const auto executor = Executor::Create(plan, executor_options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    const Step step;
    ASSERT_FALSE((*executor)->Run(step.input()).ok());
    const std::vector<TraceEvent> events = (*executor)->Trace(1);
    EXPECT_TRUE(Has(events, "1F2")) << "room " << room;
    EXPECT_TRUE(Has(events, "loss[4] total layer 1")) << "room " << room;
    EXPECT_FALSE(Has(events, "1U0")) << "the step went on";
    for (const TraceEvent& event : events) EXPECT_LE(event.begin_ns, event.end_ns) << event.name;
  }
}

// The exchange of a loaded plan, made one that no group can do.
TEST(FailingStep, AnExchangeSaysItsGroup) {
  ChainOptions options;
  options.tp = options.pp = 2;
  const Plan plan = ChainPlan(options);
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  Workers workers(2, 1);
  auto loaded = LoadPlan(plan, kernels, 0, workers.width(), {0, plan.mesh.world_size()});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (LoadedSegment& segment : (*loaded)->segments) {
    if (segment.segment->name != "forward") continue;
    segment.exchanges.at(0).parts.at(0).kind = CollectiveKind::kSlice;
  }
  DeviceRoom room;
  room.workspace = 1 << 16;
  room.kernels = 2;
  for (const RankPlace& place : (*loaded)->ranks) {
    room.arenas.push_back(plan.classes[place.rank_class].memory.peak);
  }
  const auto device = CpuDevice::Create(room, workers);
  ASSERT_TRUE(device.ok()) << device.status();
  std::vector<RankProgress> progress(room.arenas.size());
  StepMachine machine(**loaded, nullptr, workers, **device, absl::MakeSpan(progress),
                      TraceLimits{/*room=*/100}, {});
  const Step step;
  const absl::Status status = machine.Run(step.input());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StartsWith(status.message(),
                               "ranks 0, 1, 0F0, forward[2] all_reduce layer 0, all-reduce tp: no "
                               "exchange between ranks does slice of f32\n"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "\n  -> forward[2] start y = all_reduce(part)\n"))
      << status;
  for (int rank : {0, 1}) {
    const Rank& state = machine.ranks()[static_cast<size_t>(rank)];
    EXPECT_EQ(state.comm_trace.records().size(), 1u);
    EXPECT_TRUE(Has(NamedEvents(**loaded, rank, state.compute_trace), "0F0")) << rank;
  }
}

}  // namespace
}  // namespace mgc
