// What the emulated runtime does for code that is right.
#include "kernels/cuda/emulator/runtime.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/emulator/seeded_fault.h"
#include "kernels/cuda/emulator/watch.h"

namespace mgc::cuda {
namespace {

using emulator::Counted;
using emulator::Floats;
using emulator::Leaks;
using emulator::TakeFault;

constexpr int kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr LaunchShape kShape{1, 1, 1, kCount, 0};

__global__ void PlusOneKernel(float* x) { x[threadIdx.x] += 1; }

// Where who comes writes its name. Inside of a struct pointers are not seen, so that two streams
// may use one.
struct Log {
  int* names;
};
__global__ void LogKernel(Log log, int name) {
  int at = 0;
  while (log.names[at] >= 0) ++at;
  log.names[at] = name;
}

cudaStream_t MakeStream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}

void Synchronize(cudaStream_t stream) {
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

class EmulatedRuntime : public testing::Test {
 protected:
  ~EmulatedRuntime() override {
    EXPECT_EQ(TakeFault(), "");
    EXPECT_EQ(Leaks(), "");
  }
};

std::vector<float> CountedFrom(int first) {
  std::vector<float> values = Counted(kCount);
  for (float& value : values) value += static_cast<float>(first);
  return values;
}

// Three streams, each with five launches: in which order they are done.
std::vector<int> OrderOf(uint64_t seed) {
  emulator::SetSeed(seed);
  constexpr int kStreams = 3, kLaunches = 5;
  void* names = nullptr;
  cudaMalloc(&names, (kStreams * kLaunches + 1) * sizeof(int));
  cudaMemset(names, 0xff, (kStreams * kLaunches + 1) * sizeof(int));
  cudaDeviceSynchronize();
  std::vector<cudaStream_t> streams;
  for (int s = 0; s < kStreams; ++s) streams.push_back(MakeStream());
  for (int n = 0; n < kLaunches; ++n) {
    for (int s = 0; s < kStreams; ++s) {
      Launch(LogKernel, LaunchShape{1, 1, 1, 1, 0}, streams[static_cast<size_t>(s)],
             Log{static_cast<int*>(names)}, s);
    }
  }
  cudaDeviceSynchronize();
  std::vector<int> order(kStreams * kLaunches);
  cudaMemcpy(order.data(), names, order.size() * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(names);
  for (cudaStream_t stream : streams) Synchronize(stream);
  return order;
}

TEST_F(EmulatedRuntime, DrawsTheOrderOfStreamsWithTheSeed) {
  bool others = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(OrderOf(seed), OrderOf(seed)) << "seed " << seed;
    others = others || OrderOf(seed) != OrderOf(seed + 1);
  }
  EXPECT_TRUE(others);
}

TEST_F(EmulatedRuntime, DoesNothingUntilSomebodyMustHaveIt) {
  const Floats x(Counted(kCount));
  cudaStream_t stream = MakeStream();
  Launch(PlusOneKernel, kShape, stream, x.at());
  EXPECT_EQ(x.at()[1], 1);  // a look that CUDA would not allow
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess) << "the one thing there was to do";
  EXPECT_EQ(x.at()[1], 2);
  Synchronize(stream);
}

TEST_F(EmulatedRuntime, LetsTheDefaultStreamWaitForBlockingOnes) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    emulator::SetSeed(seed);
    const Floats x(Counted(kCount));
    cudaStream_t a = MakeStream(cudaStreamDefault), b = MakeStream(cudaStreamDefault);
    Launch(PlusOneKernel, kShape, a, x.at());
    Launch(PlusOneKernel, kShape, nullptr, x.at());
    Launch(PlusOneKernel, kShape, b, x.at());
    EXPECT_EQ(x.Get(), CountedFrom(3));
    Synchronize(a);
    Synchronize(b);
  }
}

TEST_F(EmulatedRuntime, ReadsPageableMemoryAtOnce) {
  const Floats x(kCount);
  std::vector<float> host = Counted(kCount);
  cudaStream_t stream = MakeStream();
  cudaMemcpyAsync(x.at(), host.data(), kBytes, cudaMemcpyHostToDevice, stream);
  host.assign(kCount, -1.0f);
  Synchronize(stream);
  EXPECT_EQ(x.Get(), Counted(kCount));
}

TEST_F(EmulatedRuntime, RunsAGraphAsOftenAsItIsLaunched) {
  const Floats x(Counted(kCount));
  cudaStream_t stream = MakeStream();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int n = 0; n < 3; ++n) Launch(PlusOneKernel, kShape, stream, x.at());
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(stream, &status);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  std::thread([] {  // another thread may do what it likes
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  })
      .join();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(x.Get(), Counted(kCount));
  size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  EXPECT_EQ(nodes, 3);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int n = 0; n < 4; ++n) EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  Synchronize(stream);
  EXPECT_EQ(x.Get(), CountedFrom(12));
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  bool is = false;
};

TEST_F(EmulatedRuntime, RunsHostFunctionsWithoutBeingAsked) {
  const Floats x(Counted(kCount));
  cudaStream_t stream = MakeStream();
  Told told;
  {
    std::unique_lock<std::mutex> lock(told.mutex);  // which the function needs
    Launch(PlusOneKernel, kShape, stream, x.at());
    const auto tell = [](void* data) {
      auto* const to = static_cast<Told*>(data);
      const std::lock_guard<std::mutex> inner(to->mutex);
      to->is = true;
      to->changed.notify_all();
    };
    EXPECT_EQ(cudaLaunchHostFunc(stream, tell, &told), cudaSuccess);
    told.changed.wait(lock, [&] { return told.is; });
  }
  EXPECT_EQ(x.at()[1], 2);
  Synchronize(stream);
}

TEST_F(EmulatedRuntime, ServesThreadsAtTheSameTime) {
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      const Floats x(CountedFrom(t));
      cudaStream_t a = MakeStream(), b = MakeStream();
      cudaEvent_t done;
      cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
      for (int round = 0; round < kRounds; ++round) {
        cudaStream_t stream = round % 2 == 0 ? a : b;
        if (round > 0) cudaStreamWaitEvent(stream, done);
        Launch(PlusOneKernel, kShape, stream, x.at());
        cudaEventRecord(done, stream);
      }
      EXPECT_EQ(cudaEventSynchronize(done), cudaSuccess);
      EXPECT_EQ(x.Get(), CountedFrom(t + kRounds));
      cudaEventDestroy(done);
      Synchronize(a);
      Synchronize(b);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(EmulatedRuntime, HasSoMuchMemoryAndNoMore) {
  emulator::SetDeviceMemory(1000);
  void *a = nullptr, *b = nullptr;
  EXPECT_EQ(cudaMalloc(&a, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&b, 600), cudaErrorMemoryAllocation);
  EXPECT_EQ(b, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 400);
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(Leaks().find("(600 bytes of device memory)") != std::string::npos, true) << Leaks();
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  emulator::SetDeviceMemory(size_t{16} << 30);
}

__global__ void StuckKernel() {
  if (threadIdx.x == 0) __syncthreads();
}

TEST_F(EmulatedRuntime, ReturnsWhatWentWrongOnTheDeviceUntilItIsTaken) {
  const Floats x(Counted(kCount));
  Launch(StuckKernel, kShape, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(Launch(PlusOneKernel, kShape, nullptr, x.at()), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorLaunchFailure);
  EXPECT_NE(TakeFault(), "");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(x.Get(), Counted(kCount));
}

TEST_F(EmulatedRuntime, TellsTimes) {
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  cudaEventRecord(from);
  cudaEventRecord(to);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
  while (cudaEventQuery(to) == cudaErrorNotReady) {
  }
  EXPECT_EQ(cudaEventElapsedTime(&ms, from, to), cudaSuccess);
  EXPECT_GE(ms, 0);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
}

}  // namespace
}  // namespace mgc::cuda
