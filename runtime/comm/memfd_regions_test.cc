// Real processes over memory that they map from each other.

#include "runtime/comm/memfd_regions.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "runtime/comm/mixed_link.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/flow_runner.h"
#include "runtime/comm/testing/forked_world.h"

namespace mgc {
namespace {

constexpr std::chrono::seconds kDeadline(40);
constexpr int64_t kLargeBytes = int64_t{64} << 20;

MemfdRegions::Exchange ExchangeOver(ForkedWorld& world, int self) {
  return [&world, self](const std::string& mine) { return world.Exchange(self, mine); };
}

void ExpectAllOk(const std::vector<absl::Status>& statuses) {
  for (size_t p = 0; p < statuses.size(); ++p) {
    EXPECT_TRUE(statuses[p].ok()) << "process " << p << ": " << statuses[p];
  }
}

// Runs cases in this process, with tiles in memory of `tiles`, if these are given.
absl::Status RunCases(ForkedWorld& world, Link& link, SharedRegions* tiles, int self, uint64_t seed,
                      int cases) {
  const auto channels = FlowChannels(world.processes(), self, 1);
  MGC_RETURN_IF_ERROR(link.Open(channels, self));
  FlowRunner runner(link, channels, self, 0, seed + static_cast<uint64_t>(self));
  if (tiles != nullptr) {
    MGC_RETURN_IF_ERROR(tiles->Make(2 * kLargeBytes).status());
    MGC_RETURN_IF_ERROR(tiles->Publish());
    MGC_ASSIGN_OR_RETURN(const RegionBases bases, BasesOf(*tiles, self));
    runner.Map(bases);
  }
  MGC_RETURN_IF_ERROR(runner.RunCases(world.processes(), cases, seed));
  if (world.processes() > 2) return absl::OkStatus();
  for (FlowWay way : {FlowWay::kLine, FlowWay::kMapped}) {
    if (way == FlowWay::kMapped && tiles == nullptr) continue;
    MGC_RETURN_IF_ERROR(runner.Run(LargeFlowCase(2, kLargeBytes, way), 1, seed));
  }
  return absl::OkStatus();
}

class Forked : public testing::TestWithParam<int> {};

TEST_P(Forked, EqualsTheExchangeInOneProcess) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  ForkedWorld world(GetParam());
  const auto body = [&](int self) -> absl::Status {
    const auto exchange = ExchangeOver(world, self);
    MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                         MemfdRegions::FindReachable(self, "host", exchange));
    const auto check = [&] { return world.status(); };
    MemfdRegions regions(reachable, exchange, check), tiles(reachable, exchange, check);
    SharedLink link(regions);
    return RunCases(world, link, &tiles, self, seed, 40);
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

INSTANTIATE_TEST_SUITE_P(All, Forked, testing::Values(2, 3, 4));

// Two links of the same kind: neighbours over one, the others over the other.
TEST(MixedLinkTest, EqualsTheExchangeInOneProcess) {
  ForkedWorld world(4);
  const auto body = [&](int self) -> absl::Status {
    const auto exchange = ExchangeOver(world, self);
    const auto check = [&] { return world.status(); };
    std::vector<bool> near(4), all(4, true);
    for (int p = 0; p < 4; ++p) near[static_cast<size_t>(p)] = p / 2 == self / 2;
    MemfdRegions near_regions(near, exchange, check), far_regions(all, exchange, check);
    SharedLink near_link(near_regions), far_link(far_regions);
    MixedLink link(near, near_link, far_link);
    return RunCases(world, link, nullptr, self, 5, 40);
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

TEST(MemfdRegionsTest, ReachesTheProcessesOfAHost) {
  ForkedWorld world(3);
  const auto body = [&](int self) -> absl::Status {
    MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                         MemfdRegions::FindReachable(self, "host", ExchangeOver(world, self)));
    return reachable == std::vector<bool>(3, true) ? absl::OkStatus()
                                                   : absl::InternalError("out of reach");
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

// One kernel may serve what its users take for two hosts.
TEST(MemfdRegionsTest, AnotherNameIsAnotherHost) {
  ForkedWorld world(3);
  const auto body = [&](int self) -> absl::Status {
    MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                         MemfdRegions::FindReachable(self, self == 1 ? "other host" : "host",
                                                     ExchangeOver(world, self)));
    const std::vector<bool> want =
        self == 1 ? std::vector<bool>{false, true, false} : std::vector<bool>{true, false, true};
    return reachable == want ? absl::OkStatus() : absl::InternalError("not what it should be");
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

// It makes no region, and joins in publishing those of others.
TEST(MemfdRegionsTest, WhoHasNobodyInReachHasNoBases) {
  ForkedWorld world(3);
  const auto body = [&](int self) -> absl::Status {
    std::vector<bool> reachable = {true, true, false};
    if (self == 2) reachable = {false, false, true};
    MemfdRegions regions(reachable, ExchangeOver(world, self), [] { return absl::OkStatus(); });
    if (self != 2) MGC_RETURN_IF_ERROR(regions.Make(10).status());
    MGC_RETURN_IF_ERROR(regions.Publish());
    MGC_ASSIGN_OR_RETURN(const RegionBases bases, BasesOf(regions, self));
    if (self == 2) return bases.empty() ? absl::OkStatus() : absl::InternalError("has bases");
    const bool fits =
        bases.size() == 3 && bases[0] != nullptr && bases[1] != nullptr && bases[2] == nullptr;
    return fits ? absl::OkStatus() : absl::InternalError("not those in reach");
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

// Process 2's place is spoiled as another host's would be: another file, another process's memory,
// or nothing at all. Both sides find out.
class Spoiled : public testing::TestWithParam<std::string> {};

TEST_P(Spoiled, IsOutOfReachForBothSides) {
  ForkedWorld world(3);
  const auto body = [&](int self) -> absl::Status {
    int calls = 0;
    const auto exchange = [&](const std::string& mine) -> absl::StatusOr<std::vector<std::string>> {
      MGC_ASSIGN_OR_RETURN(auto all, world.Exchange(self, mine));
      if (calls++ == 0 && self != 2) {
        const size_t blank = all[2].find(' ');
        all[2] = GetParam() == "another's"
                     ? all[0].substr(0, all[0].find(' ')) + all[2].substr(blank)
                     : absl::StrCat(GetParam(), all[2].substr(blank));
      }
      return all;
    };
    MGC_ASSIGN_OR_RETURN(const std::vector<bool> reachable,
                         MemfdRegions::FindReachable(self, "host", exchange));
    const std::vector<bool> want =
        self == 2 ? std::vector<bool>{false, false, true} : std::vector<bool>{true, true, false};
    return reachable == want ? absl::OkStatus() : absl::InternalError("not what it should be");
  };
  ExpectAllOk(world.Run(body, kDeadline));
}

INSTANTIATE_TEST_SUITE_P(All, Spoiled,
                         testing::Values("another's", "/proc/self/exe", "/dev/null", "/nowhere"));

TEST(MemfdRegionsTest, AnErrorEndsTheRunOfAll) {
  ForkedWorld world(3);
  const auto body = [&](int self) -> absl::Status {
    MemfdRegions regions(std::vector<bool>(3, true), ExchangeOver(world, self),
                         [&] { return world.status(); });
    SharedLink link(regions);
    const auto channels = FlowChannels(3, self, 1);
    MGC_RETURN_IF_ERROR(link.Open(channels, self));
    if (self == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      world.Abort(absl::DataLossError("process 1 has lost it"));
    }
    return FlowRunner(link, channels, self, 0, 1).RunCases(3, self == 1 ? 0 : 1, 1);
  };
  const std::vector<absl::Status> statuses = world.Run(body, kDeadline);
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  for (const size_t p : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(statuses[p].code(), absl::StatusCode::kDataLoss) << statuses[p];
    EXPECT_NE(statuses[p].message().find("has lost it"), std::string::npos) << statuses[p];
  }
}

// An owner may be gone while others still use its memory.
TEST(MemfdRegionsTest, OutlivesItsOwner) {
  ForkedWorld world(2);
  const auto body = [&](int self) -> absl::Status {
    MemfdRegions regions(std::vector<bool>(2, true), ExchangeOver(world, self),
                         [] { return absl::OkStatus(); });
    MGC_ASSIGN_OR_RETURN(char* const own, regions.Make(5000));
    own[4999] = static_cast<char>('a' + self);
    MGC_RETURN_IF_ERROR(regions.Publish());
    if (self == 1) raise(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    MGC_ASSIGN_OR_RETURN(const char* const other, regions.Of(1));
    return other[4999] == 'b' ? absl::OkStatus() : absl::InternalError("other memory");
  };
  const std::vector<absl::Status> statuses = world.Run(body, kDeadline);
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kAborted) << statuses[1];
}

}  // namespace
}  // namespace mgc
