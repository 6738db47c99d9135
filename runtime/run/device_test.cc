// Marks alone order what queues do: whatever is issued may be done as late as they allow, in any
// order they allow, and no bit changes; without any kind of wait some bit does.

#include "runtime/run/device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/arena_bytes.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/device_deferred.h"
#include "runtime/run/testing/heap_processes.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr uint64_t kSeeds = 20;

ChainOptions Chain(int tp, int dp, int pp) {
  ChainOptions options;
  options.tp = tp;
  options.dp = dp;
  options.pp = pp;
  options.micro_batches = 6;
  return options;
}

const std::vector<ChainOptions>& Chains() {
  static const auto* const chains =
      new std::vector<ChainOptions>{Chain(1, 1, 1), Chain(2, 1, 1), Chain(1, 2, 1), Chain(1, 1, 2),
                                    Chain(1, 1, 3), Chain(2, 2, 2), Chain(1, 3, 2), Chain(3, 1, 2)};
  return *chains;
}

// What training and evaluation leave in the arenas of the ranks of `place`, rank by rank. Few
// samples count, so that micro-batches differ and a step leaves something else than the next.
std::vector<std::string> RunChain(const ChainOptions& chain, const DeviceFactory& device,
                                  absl::optional<ProcessPlace> place = {}) {
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  const Plan plan = ChainPlan(chain);
  const auto data = TokenDataset::FromBytes(std::string(1000, 'a'), chain.seq, "data");
  ExecutorOptions options;
  options.kernels = kernels;
  options.workers = 2;
  options.process = place;
  options.device = device;
  const auto executor = Executor::Create(plan, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  if (!executor.ok()) return {};
  InitializeParameters(7, **executor);
  std::vector<std::string> left;
  for (int step = 0; step < 4; ++step) {
    const NamedScalar scalars[] = {{"lr", 0.05}};
    StepInput input;
    input.eval = step % 2 == 1;
    input.data = {&*data, 0, 6 + 8 * int64_t{step}};
    input.scalars = scalars;
    const absl::Status status = (*executor)->Run(input);
    EXPECT_TRUE(status.ok()) << status;
    const RankRange& local = (*executor)->local();
    for (int64_t rank = local.begin; rank < local.end; ++rank) {
      left.push_back(ArenaBytes(**executor, rank, (*executor)->MeasuredPeak(rank)));
    }
  }
  return left;
}

TEST(DeviceTest, WhatIsDoneLaterIsTheSame) {
  for (const ChainOptions& chain : Chains()) {
    const std::vector<std::string> at_once = RunChain(chain, nullptr);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      EXPECT_TRUE(RunChain(chain, DeferredDevices({seed, {}})) == at_once)
          << "tp " << chain.tp << " dp " << chain.dp << " pp " << chain.pp << ", seed " << seed;
    }
  }
}

// Whether some chain with some seed shows that a wait is left out.
bool ShowsWithout(Wait wait) {
  for (const ChainOptions& chain : Chains()) {
    const std::vector<std::string> at_once = RunChain(chain, nullptr);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      if (RunChain(chain, DeferredDevices({seed, wait})) != at_once) return true;
    }
  }
  return false;
}

class LeftOut : public testing::TestWithParam<int> {};

TEST_P(LeftOut, Shows) { EXPECT_TRUE(ShowsWithout(static_cast<Wait>(GetParam()))); }

INSTANTIATE_TEST_SUITE_P(Waits, LeftOut, testing::Range(0, kNumWaits));

// What other processes have a part in is handed over when it is there, not when it is issued.
TEST(DeviceTest, SeveralProcessesGetWhatIsDone) {
  for (const ChainOptions& chain : {Chain(2, 2, 2), Chain(1, 1, 3)}) {
    const Plan plan = ChainPlan(chain);
    const std::vector<std::string> alone = RunChain(chain, nullptr);
    const int64_t ranks = plan.mesh.world_size();
    for (bool mapped : {false, true}) {
      InHeapProcesses(ranks, 3, mapped, [&](const ProcessPlace& place) {
        const auto seed = static_cast<uint64_t>(place.self);
        const std::vector<std::string> mine = RunChain(chain, DeferredDevices({seed, {}}), place);
        const RankRange local = place.map->RanksOf(place.self);
        ASSERT_EQ(mine.size(), static_cast<size_t>(4 * local.size()));
        for (size_t i = 0; i < mine.size(); ++i) {
          const int64_t step = static_cast<int64_t>(i) / local.size();
          const int64_t rank = local.begin + static_cast<int64_t>(i) % local.size();
          EXPECT_TRUE(mine[i] == alone[static_cast<size_t>(step * ranks + rank)])
              << "step " << step << ", rank " << rank;
        }
      });
    }
  }
}

// Of a device that does it later, the step's end has a kernel's error, and the device keeps it.
TEST(DeviceTest, ALateErrorEndsTheStep) {
  class Failing : public Kernel {
   public:
    absl::Status Run(const KernelRun&, Parallel&) const override {
      return absl::UnavailableError("the device is gone");
    }
  };
  std::vector<KernelEntry> kernels = ReferenceKernels();
  for (KernelEntry& entry : kernels) {
    if (absl::string_view(entry.op) != "total") continue;
    entry.make = [](const KernelSpec&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      return std::make_unique<Failing>();
    };
  }
  const Plan plan = ChainPlan(Chain(1, 1, 2));
  const auto data = TokenDataset::FromBytes(std::string(1000, 'a'), plan.seq_length, "data");
  ExecutorOptions options;
  options.kernels = kernels;
  options.device = DeferredDevices({});
  const auto executor = Executor::Create(plan, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  StepInput input;
  input.data = {&*data, 0, 100};
  const absl::Status status = (*executor)->Run(input);
  EXPECT_EQ(status, absl::UnavailableError("the device is gone"));
  EXPECT_EQ((*executor)->Run(input), status);
}

}  // namespace
}  // namespace mgc
