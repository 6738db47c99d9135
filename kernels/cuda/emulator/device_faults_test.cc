// Several devices: what only one of them may be given, and what orders them.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/plus_one.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/seeded_fault.h"
#include "kernels/cuda/emulator/watch.h"

namespace mgc::cuda {
namespace {

using emulator::Counted;
using emulator::CountedFrom;
using emulator::Floats;
using emulator::kBytes;
using emulator::kCount;
using emulator::Outcome;
using emulator::PlusOne;
using emulator::PlusOneKernel;
using emulator::SeededFault;

// What a device has for a test; made, used and destroyed with that device as the current one.
struct OnDevice {
  explicit OnDevice(int number) : device(number) {
    cudaSetDevice(number);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    x = new Floats(Counted(kCount));
    y = new Floats(kCount);
  }
  ~OnDevice() {
    cudaSetDevice(device);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaEventDestroy(event);
    delete x;
    delete y;
    cudaSetDevice(0);
  }
  OnDevice(const OnDevice&) = delete;

  int device;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  Floats* x;
  Floats* y;
};

// Two devices, the second one current.
SeededFault Between(const char* name, const char* message,
                    void (*use)(bool faulty, const OnDevice& a, const OnDevice& b,
                                Outcome* outcome)) {
  return {name, message, [use](bool faulty, Outcome* outcome) {
            const OnDevice a(0), b(1);
            use(faulty, a, b, outcome);
          }};
}

std::vector<SeededFault> All() {
  return {
      Between("LaunchOfAnotherDevice", "while device 1 is current",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome*) {
                const OnDevice& on = faulty ? a : b;
                PlusOne(on.stream, on.x->at(), on.y->at());
              }),
      Between("MemoryOfAnotherDevice", "is given memory of device 0 on device 1",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome*) {
                PlusOne(b.stream, (faulty ? a : b).x->at(), b.y->at());
              }),
      Between("MemsetOfAnotherDevice", "writes memory of device 0 on device 1",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome*) {
                cudaMemsetAsync((faulty ? a : b).x->at(), 0, kBytes, b.stream);
              }),
      Between("EventOfAnotherDevice", "of device 0 in stream",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome*) {
                cudaEventRecord((faulty ? a : b).event, b.stream);
              }),
      Between("NoSuchDevice", "is given device 8 of 8",
              [](bool faulty, const OnDevice&, const OnDevice&, Outcome*) {
                cudaSetDevice(faulty ? 8 : 7);
                cudaSetDevice(1);
              }),
      Between("CopyNotWaitedFor", "no event orders the two",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome* outcome) {
                cudaSetDevice(0);
                PlusOne(a.stream, a.x->at(), a.y->at());
                cudaEventRecord(a.event, a.stream);
                if (!faulty) cudaStreamWaitEvent(b.stream, a.event);
                cudaMemcpyAsync(b.x->at(), a.y->at(), kBytes, cudaMemcpyDeviceToDevice, b.stream);
                cudaStreamSynchronize(b.stream);
                outcome->got = b.x->Get();
                outcome->wanted = CountedFrom(1);
              }),
      Between("AnotherDeviceAwaited", "",
              [](bool faulty, const OnDevice& a, const OnDevice& b, Outcome* outcome) {
                PlusOne(b.stream, b.x->at(), b.y->at());
                void* host = nullptr;
                cudaMallocHost(&host, kBytes);
                cudaMemcpyAsync(host, b.y->at(), kBytes, cudaMemcpyDeviceToHost, b.stream);
                cudaSetDevice((faulty ? a : b).device);
                cudaDeviceSynchronize();
                const auto* const read = static_cast<const float*>(host);
                outcome->got.assign(read, read + kCount);
                outcome->wanted = CountedFrom(1);
                cudaStreamSynchronize(b.stream);
                cudaFreeHost(host);
              }),
  };
}

class DeviceFaults : public testing::TestWithParam<SeededFault> {};

TEST_P(DeviceFaults, AreFound) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, DeviceFaults, testing::ValuesIn(All()),
                         [](const auto& info) { return info.param.name; });

TEST(Devices, ReachEachOtherWhereTheyMay) {
  emulator::SetDevices(2);
  int can = 0;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
  EXPECT_EQ(can, 1);
  {
    const OnDevice a(0), b(1);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    PlusOne(b.stream, a.x->at(), b.y->at());
    EXPECT_EQ(cudaStreamSynchronize(b.stream), cudaSuccess);
    EXPECT_EQ(b.y->Get(), CountedFrom(1));
  }
  EXPECT_EQ(emulator::TakeFault(), "");
  emulator::SetDevices(2, /*peer_access=*/false);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
  emulator::SetDevices(8);
}

TEST(Devices, HaveMemoryOfTheirOwn) {
  emulator::SetDeviceMemory(1000);
  void* memory[2] = {};
  for (int device : {0, 1}) {
    cudaSetDevice(device);
    EXPECT_EQ(cudaMalloc(&memory[device], 600), cudaSuccess);
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_EQ(free, 400u);
  }
  cudaSetDevice(0);
  for (void* each : memory) EXPECT_EQ(cudaFree(each), cudaSuccess);
  emulator::SetDeviceMemory(size_t{16} << 30);
  char first[20], second[20];
  EXPECT_EQ(cudaDeviceGetPCIBusId(first, sizeof(first), 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetPCIBusId(second, sizeof(second), 1), cudaSuccess);
  EXPECT_NE(std::string(first), second);
}

}  // namespace
}  // namespace mgc::cuda
