// Collectives between processes that are threads, each with a link and a flow of its own, against
// RunExchanges over all members: bit for bit.

#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/flow_runner.h"
#include "runtime/comm/testing/heap_library.h"
#include "runtime/comm/testing/heap_regions.h"

namespace mgc {
namespace {

constexpr int kTimes = 2;

// Runs a case in as many threads; `use` may have the runner of a process use something else than
// its link.
void RunCase(int processes, const FlowCase& c, uint64_t seed,
             const std::function<absl::Status(int self, FlowRunner& runner)>& use) {
  HeapWorld world(processes);
  std::vector<absl::Status> statuses(static_cast<size_t>(processes));
  const auto run = [&](int self) -> absl::Status {
    HeapRegions regions(world, self);
    SharedLink link(regions);
    const auto channels = FlowChannels(processes, self, 1);
    MGC_RETURN_IF_ERROR(link.Open(channels, self));
    FlowRunner runner(link, channels, self, 0, seed + static_cast<uint64_t>(self));
    MGC_RETURN_IF_ERROR(use(self, runner));
    absl::Status status = runner.Run(c, kTimes, seed);
    if (!status.ok()) world.Abort(status);
    return status;
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(processes));
  for (int p = 0; p < processes; ++p) {
    threads.emplace_back([&, p] { statuses[static_cast<size_t>(p)] = run(p); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int p = 0; p < processes; ++p) {
    const absl::Status& status = statuses[static_cast<size_t>(p)];
    ASSERT_TRUE(status.ok()) << "process " << p << ": " << status;
  }
}

TEST(FlowTest, EqualsTheExchangeInOneProcess) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  constexpr int kCases = 60;
  for (int i = 0; i < kCases; ++i) {
    const int processes = std::uniform_int_distribution<int>(2, 4)(random);
    const FlowCase c = DrawFlowCase(processes, true, &random);
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", c.Describe()));
    HeapWorld tiles(processes);
    RunCase(processes, c, random(), [&](int self, FlowRunner& runner) -> absl::Status {
      if (c.way != FlowWay::kMapped) return absl::OkStatus();
      HeapRegions own(tiles, self);
      MGC_RETURN_IF_ERROR(own.Make(kFlowRegionBytes).status());
      MGC_RETURN_IF_ERROR(own.Publish());
      MGC_ASSIGN_OR_RETURN(const RegionBases bases, BasesOf(own, self));
      runner.Map(bases);
      return absl::OkStatus();
    });
    if (HasFatalFailure()) return;
  }
}

// Whole numbers have the same sum in the library's order as in that of members.
TEST(FlowTest, EqualsTheExchangeThroughALibrary) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  constexpr int kCases = 40;
  for (int i = 0; i < kCases; ++i) {
    const int processes = std::uniform_int_distribution<int>(2, 4)(random);
    const FlowCase c = DrawLibraryCase(processes, &random);
    SCOPED_TRACE(absl::StrCat("case ", i, ": ", c.Describe()));
    HeapSums sums;
    std::vector<std::vector<LibraryGroupKey>> groups;
    std::vector<std::unique_ptr<HeapLibrary>> libraries;
    for (int p = 0; p < processes; ++p) {
      groups.push_back(FlowLibraryGroups(processes, p, 1));
      libraries.push_back(std::make_unique<HeapLibrary>(sums, p));
      ASSERT_TRUE(libraries.back()->Open(groups.back()).ok());
    }
    RunCase(processes, c, random(), [&](int self, FlowRunner& runner) {
      runner.Use(*libraries[static_cast<size_t>(self)], groups[static_cast<size_t>(self)]);
      return absl::OkStatus();
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace mgc
