// What the emulated NCCL reports: each mistake that would hang or corrupt a run on GPUs.
#include "runtime/cuda/emulator/nccl.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulator.h"

namespace mgc::cuda::emulator {
namespace {

using testing::HasSubstr;

// Ranks of one thread, with a stream and a buffer each.
class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    SetNcclPatience(std::chrono::milliseconds(50));
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    comms_.resize(kRanks);
    streams_.resize(kRanks);
    buffers_.resize(kRanks);
    ncclGroupStart();
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      EXPECT_EQ(ncclCommInitRank(&comms_[r], kRanks, id, r), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams_[r], cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&buffers_[r]), kRanks * kCount * sizeof(float)),
                cudaSuccess);
    }
    cudaSetDevice(0);
  }
  void TearDown() override {
    for (cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    for (int r = 0; r < kRanks; ++r) {
      cudaStreamDestroy(streams_[r]);
      cudaFree(buffers_[r]);
      ncclCommAbort(comms_[r]);
    }
    EXPECT_EQ(TakeFault(), "");
    EXPECT_EQ(NcclCommunicators(), 0);
    SetNcclPatience(std::chrono::seconds(20));
  }

  ncclResult_t Sum(int rank, size_t count = kCount) {
    return ncclAllReduce(buffers_[rank], buffers_[rank], count, ncclFloat32, ncclSum, comms_[rank],
                         streams_[rank]);
  }

  static constexpr int kRanks = 3;
  static constexpr size_t kCount = 10;
  std::vector<ncclComm_t> comms_;
  std::vector<cudaStream_t> streams_;
  std::vector<float*> buffers_;
};

TEST_F(Nccl, RanksThatAreThreadsSum) {
  SetNcclPatience(std::chrono::seconds(20));
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      const std::vector<float> terms(kCount, static_cast<float>(r + 1));
      cudaMemcpyAsync(buffers_[r], terms.data(), kCount * sizeof(float), cudaMemcpyHostToDevice,
                      streams_[r]);
      EXPECT_EQ(Sum(r), ncclSuccess);
      EXPECT_EQ(Sum(r), ncclSuccess);
      std::vector<float> sums(kCount);
      cudaMemcpyAsync(sums.data(), buffers_[r], kCount * sizeof(float), cudaMemcpyDeviceToHost,
                      streams_[r]);
      cudaStreamSynchronize(streams_[r]);
      EXPECT_EQ(sums, std::vector<float>(kCount, 18));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Nccl, FindsRanksThatDoNotCome) {
  ncclGroupStart();
  Sum(0);
  Sum(2);
  EXPECT_EQ(ncclGroupEnd(), ncclSystemError);
  EXPECT_THAT(TakeFault(), HasSubstr("not all ranks come to all-reduce of 10 elements"));
  ncclResult_t met = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comms_[1], &met), ncclSuccess);
  EXPECT_EQ(met, ncclSystemError);
}

// Each sends before it receives, and not in one group of calls.
TEST_F(Nccl, FindsRanksThatWaitForEachOther) {
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      EXPECT_EQ(ncclSend(buffers_[r], 1, ncclFloat32, 1 - r, comms_[r], streams_[r]),
                ncclSystemError);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(TakeFault(), HasSubstr("not all ranks come to send"));
}

TEST_F(Nccl, FindsCallsThatDiffer) {
  ncclGroupStart();
  Sum(0);
  Sum(1);
  Sum(2, 4);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("ranks do not call the same"));
}

TEST_F(Nccl, FindsAnotherOrder) {
  ncclGroupStart();
  for (int r = 0; r < kRanks; ++r) {
    const auto gather = [&] {
      ncclAllGather(buffers_[r] + r * kCount, buffers_[r], kCount, ncclFloat32, comms_[r],
                    streams_[r]);
    };
    if (r == 1) gather();
    Sum(r);
    if (r != 1) gather();
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("ranks do not call the same"));
}

TEST_F(Nccl, FindsAnotherType) {
  ncclGroupStart();
  Sum(0);
  Sum(1);
  ncclAllReduce(buffers_[2], buffers_[2], kCount, ncclInt64, ncclSum, comms_[2], streams_[2]);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("ranks do not call the same"));
}

// What is called in a group is issued when the group ends, and not before.
TEST_F(Nccl, FindsAGroupThatDoesNotEnd) {
  ncclGroupStart();
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(Sum(r), ncclSuccess);
  EXPECT_EQ(OpenNcclCalls(), kRanks);
  ncclGroupEnd();
  EXPECT_EQ(OpenNcclCalls(), 0);
}

TEST_F(Nccl, FindsAStreamOfAnotherDevice) {
  EXPECT_EQ(
      ncclAllReduce(buffers_[1], buffers_[1], kCount, ncclFloat32, ncclSum, comms_[1], streams_[0]),
      ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("not one of device 1"));
  EXPECT_EQ(
      ncclAllReduce(buffers_[1], buffers_[1], kCount, ncclFloat32, ncclSum, comms_[1], nullptr),
      ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("the default stream"));
}

TEST_F(Nccl, FindsMemoryOfAnotherDevice) {
  ncclGroupStart();
  Sum(0);
  Sum(1);
  ncclAllReduce(buffers_[0], buffers_[2], kCount, ncclFloat32, ncclSum, comms_[2], streams_[2]);
  ncclGroupEnd();
  EXPECT_THAT(TakeFault(), HasSubstr("is given memory of device 0 on device 2"));
}

TEST_F(Nccl, FindsRanksThatShareADevice) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclComm_t comms[2] = {};
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) ncclCommInitRank(&comms[r], 2, id, r);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("ranks 0 and 1 of all("));
}

TEST_F(Nccl, FindsAnIdOfAnotherProcess) {
  ncclUniqueId id = {};
  id.internal[0] = 'x';
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("an id of another process"));
  EXPECT_THAT(TakeFault(), HasSubstr("an id of another process"));
}

// A stream that writes what a rank gives, and that no event orders before.
TEST_F(Nccl, FindsAnEventLeftOut) {
  cudaStream_t other = nullptr;
  cudaEvent_t written = nullptr;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
  for (bool faulty : {false, true}) {
    cudaMemsetAsync(buffers_[0], 0, kCount * sizeof(float), other);
    cudaEventRecord(written, other);
    if (!faulty) cudaStreamWaitEvent(streams_[0], written);
    ncclGroupStart();
    for (int r = 0; r < kRanks; ++r) Sum(r);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_THAT(TakeFault(), HasSubstr(faulty ? "no event orders the two" : ""));
    for (cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    cudaStreamSynchronize(other);
  }
  cudaStreamDestroy(other);
  cudaEventDestroy(written);
}

TEST_F(Nccl, FindsATransferOfOtherSizes) {
  ncclGroupStart();
  ncclSend(buffers_[0], 5, ncclFloat32, 1, comms_[0], streams_[0]);
  ncclRecv(buffers_[1], 6, ncclFloat32, 0, comms_[1], streams_[1]);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("other sizes"));
}

TEST_F(Nccl, FindsASendWithoutAReceive) {
  ncclGroupStart();
  ncclSend(buffers_[0], 5, ncclFloat32, 1, comms_[0], streams_[0]);
  ncclSend(buffers_[1], 5, ncclFloat32, 0, comms_[1], streams_[1]);
  EXPECT_EQ(ncclGroupEnd(), ncclSystemError);
  EXPECT_THAT(TakeFault(), HasSubstr("not all ranks come to send"));
}

TEST_F(Nccl, FindsWhatNoCallMayBeGiven) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_THAT(TakeFault(), HasSubstr("has not begun"));
  EXPECT_EQ(ncclAllReduce(buffers_[0], buffers_[0] + 1, kCount, ncclFloat32, ncclSum, comms_[0],
                          streams_[0]),
            ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("overlap"));
  EXPECT_EQ(
      ncclAllReduce(buffers_[0], buffers_[0], kCount, ncclFloat32, ncclAvg, comms_[0], streams_[0]),
      ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("operation 4"));
  EXPECT_EQ(ncclSend(buffers_[0], 1, ncclFloat32, kRanks, comms_[0], streams_[0]),
            ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("peer 3"));
  ncclComm_t gone = comms_[0];
  EXPECT_EQ(ncclCommDestroy(gone), ncclSuccess);
  EXPECT_EQ(Sum(0), ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("given up"));
  EXPECT_EQ(ncclCommDestroy(gone), ncclInvalidArgument);
  EXPECT_THAT(TakeFault(), HasSubstr("given up"));
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comms_[0], 1, id, 0);  // for TearDown
}

TEST_F(Nccl, AnAbortEndsWhatOthersWaitFor) {
  SetNcclPatience(std::chrono::seconds(20));
  std::thread other([&] { EXPECT_EQ(Sum(0), ncclRemoteError); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ncclCommAbort(comms_[1]), ncclSuccess);
  other.join();
  EXPECT_EQ(Sum(2), ncclRemoteError);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comms_[1], 1, id, 0);  // for TearDown
}

}  // namespace
}  // namespace mgc::cuda::emulator
