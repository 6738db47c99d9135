// Collectives between processes that are threads, each with a link and a flow of its own, against
// RunExchanges over all members: bit for bit.

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/flow_cases.h"
#include "runtime/comm/testing/heap_regions.h"

namespace mgc {
namespace {

// What processes have in common.
struct Common {
  explicit Common(int processes) : channels(processes), tiles(processes) {}

  HeapWorld channels, tiles;
};

absl::Status RunProcess(const FlowCase& c, Common& common, int self, uint64_t seed) {
  constexpr int kTimes = 2;
  HeapWorld& world = common.channels;
  HeapRegions regions(world, self), tiles(common.tiles, self);
  SharedLink link(regions);
  const auto channels = FlowChannels(world.processes(), self, 1);
  MGC_RETURN_IF_ERROR(link.Open(channels, self));
  FlowRunner runner(link, channels, self, 0, seed + static_cast<uint64_t>(self));
  if (c.way == FlowWay::kMapped) {
    MGC_RETURN_IF_ERROR(tiles.Make(kFlowRegionBytes).status());
    MGC_RETURN_IF_ERROR(tiles.Publish());
    MGC_ASSIGN_OR_RETURN(const RegionBases bases, BasesOf(tiles));
    runner.Map(bases);
  }
  const absl::Status status = runner.Run(c, kTimes, seed);
  if (!status.ok()) world.Abort(status);
  return status;
}

TEST(FlowTest, EqualsTheExchangeInOneProcess) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  constexpr int kCases = 150;
  for (int i = 0; i < kCases; ++i) {
    const int processes = std::uniform_int_distribution<int>(2, 4)(random);
    const FlowCase c = DrawFlowCase(processes, true, &random);
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", c.Describe()));
    Common common(processes);
    const uint64_t case_seed = random();
    std::vector<absl::Status> statuses(static_cast<size_t>(processes));
    std::vector<std::thread> threads;
    for (int p = 0; p < processes; ++p) {
      threads.emplace_back(
          [&, p] { statuses[static_cast<size_t>(p)] = RunProcess(c, common, p, case_seed); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int p = 0; p < processes; ++p) {
      const absl::Status& status = statuses[static_cast<size_t>(p)];
      ASSERT_TRUE(status.ok()) << "process " << p << ": " << status;
    }
  }
}

}  // namespace
}  // namespace mgc
