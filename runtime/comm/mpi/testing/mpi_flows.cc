// A program for mpirun: what links over MPI must do, in several processes. Says `good` at the end.
//
//   mpi_flows flows   collectives by MPI alone, then by shared memory within pretended hosts
//   mpi_flows library all-reduces by the MPI library's own
//   mpi_flows late    a process that does not come in time
//   mpi_flows abort   one process aborts while the others wait for its messages
//   mpi_flows kill    one process dies

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/memfd_regions.h"
#include "runtime/comm/mixed_link.h"
#include "runtime/comm/mpi/mpi_all_reduces.h"
#include "runtime/comm/mpi/mpi_link.h"
#include "runtime/comm/mpi/mpi_world.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/flow_runner.h"
#include "runtime/run/host.h"

namespace mgc {
namespace {

constexpr std::chrono::seconds kPatience(30);
constexpr uint64_t kSeed = 17;
constexpr int kLanes = 2;
constexpr int kCases = 12;  // of each lane
constexpr int64_t kLargeBytes = int64_t{64} << 20;

// Lanes are threads, so that several use a link at the same time.
void RunLanes(MpiWorld& world, const std::function<absl::Status(int lane, uint64_t seed)>& run) {
  std::vector<std::thread> threads;
  threads.reserve(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    threads.emplace_back([&world, &run, lane] {
      const absl::Status status = run(lane, kSeed + static_cast<uint64_t>(lane));
      if (status.ok()) return;
      std::cerr << status << std::endl;
      world.Abort(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

uint64_t OwnSeed(const MpiWorld& world, uint64_t seed) {
  return seed + 100 * static_cast<uint64_t>(world.rank());
}

absl::Status RunLink(MpiWorld& world, Link& link, bool large) {
  const auto channels = FlowChannels(world.size(), world.rank(), kLanes);
  MGC_RETURN_IF_ERROR(link.Open(channels, world.rank()));
  RunLanes(world, [&](int lane, uint64_t seed) {
    FlowRunner runner(link, channels, world.rank(), lane, OwnSeed(world, seed));
    MGC_RETURN_IF_ERROR(runner.RunCases(world.size(), kCases, seed));
    if (!large || lane > 0) return absl::OkStatus();
    return runner.Run(LargeFlowCase(world.size(), kLargeBytes, FlowWay::kLine), 1, seed);
  });
  return link.Poll();
}

absl::Status RunByMpi(MpiWorld& world) {
  MpiLink link(world, kPatience);
  return RunLink(world, link, world.size() == 2);
}

absl::Status RunMixed(MpiWorld& world) {
  const auto exchange = [&](const std::string& mine) { return world.Gather(mine, kPatience); };
  MGC_ASSIGN_OR_RETURN(std::vector<bool> near,
                       MemfdRegions::FindReachable(world.rank(), HostName(), exchange));
  MGC_CHECK(near == std::vector<bool>(near.size(), true)) << "processes of one host";
  for (size_t p = 0; p < near.size(); ++p) {
    near[p] = near[p] && p / 2 == static_cast<size_t>(world.rank() / 2);
  }
  MemfdRegions regions(near, exchange, [] { return absl::OkStatus(); });
  SharedLink near_link(regions);
  MpiLink far_link(world, kPatience);
  MixedLink link(near, near_link, far_link);
  return RunLink(world, link, false);
}

absl::Status CheckGather(MpiWorld& world) {
  const std::string mine(static_cast<size_t>(world.rank() * 100000),
                         static_cast<char>('a' + world.rank()));
  MGC_ASSIGN_OR_RETURN(const auto all, world.Gather(mine, kPatience));
  for (int p = 0; p < world.size(); ++p) {
    const std::string want(static_cast<size_t>(p * 100000), static_cast<char>('a' + p));
    if (all[static_cast<size_t>(p)] != want) {
      return absl::InternalError(absl::StrCat("gathered something else of process ", p));
    }
  }
  return absl::OkStatus();
}

absl::Status RunFlows(MpiWorld& world) {
  MGC_RETURN_IF_ERROR(CheckGather(world));
  MGC_RETURN_IF_ERROR(RunByMpi(world));
  MGC_RETURN_IF_ERROR(RunMixed(world));
  return CheckGather(world);
}

// Lanes have groups of their own.
absl::Status RunLibrary(MpiWorld& world) {
  constexpr int kLibraryCases = 20;  // of each lane
  MpiLink link(world, kPatience);
  MpiAllReduces library(world);
  MGC_RETURN_IF_ERROR(link.Open({}, world.rank()));
  const auto groups = FlowLibraryGroups(world.size(), world.rank(), kLanes);
  MGC_RETURN_IF_ERROR(library.Open(groups));
  const std::vector<ChannelKey> channels;
  RunLanes(world, [&](int lane, uint64_t seed) {
    FlowRunner runner(link, channels, world.rank(), lane, OwnSeed(world, seed));
    runner.Use(library, groups);
    MGC_RETURN_IF_ERROR(runner.RunCases(world.size(), kLibraryCases, seed));
    if (world.size() > 2 || lane > 0) return absl::OkStatus();
    FlowCase large = LargeFlowCase(world.size(), kLargeBytes, FlowWay::kLibrary);
    large.whole = true;
    return runner.Run(large, 1, seed);
  });
  return library.Poll();
}

// All but process 0 come too late for it.
absl::Status RunLate(MpiWorld& world) {
  if (world.rank() != 0) std::this_thread::sleep_for(kPatience);
  const absl::Status status = world.Gather("", std::chrono::milliseconds(50)).status();
  if (status.code() != absl::StatusCode::kDeadlineExceeded) return absl::InternalError("no delay");
  std::cout << "process 0 of " << world.size() << ": nobody came\n";  // Abort flushes it
  world.Abort(7);
}

// Process 1 ends while the others wait for messages of it.
absl::Status RunBadEnd(MpiWorld& world, bool aborts) {
  MpiLink link(world, kPatience);
  const auto channels = FlowChannels(world.size(), world.rank(), 1);
  MGC_RETURN_IF_ERROR(link.Open(channels, world.rank()));
  if (world.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!aborts) raise(SIGKILL);
    std::cout << "process 1 of " << world.size() << ": aborts\n";
    world.Abort(9);
  }
  return FlowRunner(link, channels, world.rank(), 0, kSeed).RunCases(world.size(), 1, kSeed);
}

absl::Status RunMode(MpiWorld& world, const std::string& mode) {
  if (mode == "flows") return RunFlows(world);
  if (mode == "library") return RunLibrary(world);
  if (mode == "late") return RunLate(world);
  if (mode == "abort" || mode == "kill") return RunBadEnd(world, mode == "abort");
  return absl::InvalidArgumentError(absl::StrCat("no mode ", mode));
}

int Main(const std::string& mode) {
  const auto world = MpiWorld::Create();
  if (!world.ok()) {
    std::cerr << world.status() << "\n";
    return 1;
  }
  absl::Status status = RunMode(**world, mode);
  const std::string name =
      absl::StrCat("process ", (*world)->rank(), " of ", (*world)->size(), ": ");
  if (status.ok()) status = (*world)->Finalize();
  if (!status.ok()) {
    std::cerr << name << status << "\n";
    (*world)->Abort(1);
  }
  std::cout << name << "good\n";
  return 0;
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::Main(argc > 1 ? argv[1] : ""); }
