// Communicators of a plan's groups, between processes that are threads, on the emulated NCCL.
#include "runtime/cuda/nccl/nccl_world.h"

#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulator.h"

namespace mgc {
namespace {

using cuda::emulator::BreakNccl;
using cuda::emulator::NcclCommunicators;
using cuda::emulator::TakeFault;
using testing::HasSubstr;

// Ranks (dp, tp) on a mesh of 3 x 2, two ranks a process.
constexpr int kRanks = 6;
constexpr int kProcesses = 3;

// The groups of the sets {tp}, {dp}, {dp, tp} and {} for two ranks, as LoadedPlan has them, and of
// {dp} for its first and its last ranks only.
std::vector<NcclGroups> SetsOf(int first) {
  std::vector<NcclGroups> sets(5);
  for (int rank : {first, first + 1}) {
    sets[0].push_back({rank / 2 * 2, rank / 2 * 2 + 1});
    sets[1].push_back({rank % 2, rank % 2 + 2, rank % 2 + 4});
    sets[2].push_back({0, 1, 2, 3, 4, 5});
    sets[3].push_back({rank});
    sets[4].push_back({rank % 2, rank % 2 + 4});
  }
  return sets;
}

// The id's way between processes.
class Sharing {
 public:
  absl::Status Share(int process, absl::Span<char> id) {
    if (process == 0) {
      id_.set_value(std::string(id.data(), id.size()));
      return absl::OkStatus();
    }
    const std::string given = shared_.get();
    std::memcpy(id.data(), given.data(), given.size());
    return absl::OkStatus();
  }

 private:
  std::promise<std::string> id_;
  std::shared_future<std::string> shared_{id_.get_future()};
};

// Runs `process` on a thread for each, with its world.
template <class Process>
void InProcesses(const Process& process) {
  Sharing sharing;
  std::vector<std::thread> threads;
  for (int p = 0; p < kProcesses; ++p) {
    threads.emplace_back([&, p] {
      const int first = 2 * p;
      auto world =
          NcclWorld::Create(kRanks, {{first, first}, {first + 1, first + 1}}, SetsOf(first),
                            [&](absl::Span<char> id) { return sharing.Share(p, id); });
      ASSERT_TRUE(world.ok()) << world.status();
      process(p, **world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The sum of one float of each member, for each of two ranks on devices from `first` on.
std::vector<float> SumOver(int first, const std::vector<ncclComm_t>& comms,
                           const std::vector<float>& terms) {
  std::vector<float*> at(comms.size());
  std::vector<cudaStream_t> streams(comms.size());
  for (size_t place = 0; place < comms.size(); ++place) {
    cudaSetDevice(first + static_cast<int>(place));
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&at[place]), sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&streams[place], cudaStreamNonBlocking), cudaSuccess);
    cudaMemcpyAsync(at[place], &terms[place], sizeof(float), cudaMemcpyHostToDevice,
                    streams[place]);
  }
  ncclGroupStart();
  for (size_t place = 0; place < comms.size(); ++place) {
    ncclAllReduce(at[place], at[place], 1, ncclFloat32, ncclSum, comms[place], streams[place]);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  std::vector<float> sums(terms.size());
  for (size_t place = 0; place < comms.size(); ++place) {
    cudaMemcpyAsync(&sums[place], at[place], sizeof(float), cudaMemcpyDeviceToHost, streams[place]);
    cudaStreamSynchronize(streams[place]);
    cudaStreamDestroy(streams[place]);
  }
  // Memory is freed when nothing of others is under way that uses it.
  for (float* each : at) cudaFree(each);
  return sums;
}

TEST(NcclWorld, HasTheGroupsOfAPlan) {
  InProcesses([](int process, NcclWorld& world) {
    const auto first = static_cast<float>(2 * process);
    const auto sum = [&](size_t set) {
      return SumOver(2 * process, {world.group(set, 0), world.group(set, 1)}, {first, first + 1});
    };
    EXPECT_EQ(sum(0), std::vector<float>({2 * first + 1, 2 * first + 1}));
    EXPECT_EQ(sum(1), std::vector<float>({0 + 2 + 4, 1 + 3 + 5}));
    EXPECT_EQ(sum(2), std::vector<float>({15, 15}));
    EXPECT_EQ(world.group(2, 0), world.all(0));
    EXPECT_EQ(world.group(3, 0), nullptr);
    if (process == 1) {
      EXPECT_EQ(world.group(4, 0), nullptr);
    } else {
      EXPECT_EQ(sum(4), std::vector<float>({0 + 4, 1 + 5}));
    }
    EXPECT_TRUE(world.Check().ok());
  });
  EXPECT_EQ(TakeFault(), "");
  EXPECT_EQ(NcclCommunicators(), 0);
}

TEST(NcclWorld, TellsWhatNcclHasMet) {
  InProcesses([](int process, NcclWorld& world) {
    if (process == 1) BreakNccl(world.group(0, 1), ncclRemoteError);
    const absl::Status met = world.Check();
    EXPECT_EQ(met.code(), process == 1 ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk);
    if (process == 1) {
      EXPECT_THAT(met.message(), HasSubstr("remote process exited"));
    }
    EXPECT_EQ(world.Check(), met) << "the first error stays";
  });
  EXPECT_EQ(TakeFault(), "");
}

// A process that gives up ends what the others wait for.
TEST(NcclWorld, AbortEndsWhatOthersWaitFor) {
  InProcesses([](int process, NcclWorld& world) {
    if (process == 0) {
      world.Abort();
      world.Abort();
      EXPECT_EQ(world.Check().code(), absl::StatusCode::kAborted);
      return;
    }
    cudaStream_t stream = nullptr;
    cudaSetDevice(world.here()[0].gpu);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    // Which 0 never takes.
    EXPECT_EQ(ncclSend(nullptr, 0, ncclChar, 0, world.all(0), stream), ncclRemoteError);
    cudaStreamDestroy(stream);
    EXPECT_FALSE(world.Check().ok());
    world.Abort();
  });
  EXPECT_EQ(TakeFault(), "");
  EXPECT_EQ(NcclCommunicators(), 0);
}

TEST(NcclWorld, HasTheErrorOfTheId) {
  const auto world = NcclWorld::Create(2, {{1, 0}}, {}, [](absl::Span<char> /*id*/) {
    return absl::UnavailableError("no connection");
  });
  EXPECT_EQ(world.status(), absl::UnavailableError("no connection"));
}

// Another process that never comes is an error, not a run that stands still.
TEST(NcclWorld, HasTheErrorOfTheCommunicators) {
  cuda::emulator::SetNcclPatience(std::chrono::milliseconds(50));
  const auto world =
      NcclWorld::Create(2, {{0, 0}}, {}, [](absl::Span<char> /*id*/) { return absl::OkStatus(); });
  EXPECT_THAT(world.status().message(), HasSubstr("the communicator of all ranks"));
  EXPECT_THAT(TakeFault(), HasSubstr("not all ranks come to init"));
  EXPECT_EQ(NcclCommunicators(), 0);
  cuda::emulator::SetNcclPatience(std::chrono::seconds(20));
}

}  // namespace
}  // namespace mgc
