// Tiles of exchanges on the host and on a device, for tests of what moves them there.

#ifndef MGC_RUNTIME_CUDA_TESTING_DEVICE_TILES_H_
#define MGC_RUNTIME_CUDA_TESTING_DEVICE_TILES_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/types/tensor_type.h"
#include "gtest/gtest.h"
#include "kernels/cuda/api.h"
#include "kernels/parallel.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/comm/testing/flow_cases.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc {

using Bytes = std::vector<char>;

inline constexpr size_t kGuardBytes = 64;  // around tiles on a device

// Of threads, blocks and streams, where they can be chosen.
inline void SetDeviceOrder(uint64_t order) {
#ifdef MGC_CUDA_EMULATED
  cuda::emulator::SetSeed(order);
#else
  static_cast<void>(order);
#endif
}
// What has gone wrong on a device that tells.
inline std::string DeviceFault() {
#ifdef MGC_CUDA_EMULATED
  return cuda::emulator::TakeFault();
#else
  return "";
#endif
}

inline void CheckCuda(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

// A tile with guards around it, in the device's memory, `shift` bytes behind where vectors would
// lie.
class DeviceTile {
 public:
  DeviceTile(const Bytes& tile, size_t shift)
      : begin_(kGuardBytes + shift), end_(begin_ + tile.size()) {
    Bytes image(end_ + kGuardBytes, kGuard);
    std::copy(tile.begin(), tile.end(), &image[begin_]);
    CheckCuda(cudaMalloc(&at_, image.size()));
    CheckCuda(cudaMemcpy(at_, image.data(), image.size(), cudaMemcpyHostToDevice));
  }
  DeviceTile(DeviceTile&& other) noexcept
      : begin_(other.begin_), end_(other.end_), at_(std::exchange(other.at_, nullptr)) {}
  ~DeviceTile() { cudaFree(at_); }

  char* at() const { return static_cast<char*>(at_) + begin_; }
  // What it holds now; fails where a guard has changed.
  Bytes Read() const {
    Bytes image(end_ + kGuardBytes);
    CheckCuda(cudaMemcpy(image.data(), at_, image.size(), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < image.size(); ++i) {
      if (i >= begin_ && i < end_) continue;
      EXPECT_EQ(image[i], kGuard) << "written beside the tile";
    }
    return {&image[begin_], &image[end_]};
  }

 private:
  static constexpr char kGuard = 'g';
  size_t begin_;
  size_t end_;
  void* at_ = nullptr;
};

// Of all members' tiles.
inline int64_t BytesOf(const std::vector<Exchange>& exchanges) {
  int64_t bytes = 0;
  for (const Exchange& x : exchanges) {
    const TileSizes sizes = SizesOf(x);
    bytes += (sizes.in + sizes.out) * SizeOf(x.dtype) * static_cast<int64_t>(x.piece.size());
  }
  return bytes;
}
// Of a case that an emulated device is done with soon.
inline constexpr int64_t kSmallBytes = 4 << 20;

// The tiles of exchanges on the host, with what RunExchanges makes of them.
struct Bucket {
  std::vector<Exchange> exchanges;
  bool in_place = false;
  std::vector<std::vector<Bytes>> in, want;  // by exchange and member

  Bucket(std::vector<Exchange> parts, bool place, bool whole, std::mt19937_64* random)
      : exchanges(std::move(parts)), in_place(place) {
    for (const Exchange& x : exchanges) {
      const TileSizes sizes = SizesOf(x);
      const int64_t bytes = SizeOf(x.dtype);
      std::vector<const char*> inputs;
      std::vector<char*> outputs;
      std::vector<Bytes>& tiles = in.emplace_back();
      std::vector<Bytes>& made = want.emplace_back();
      for (size_t m = 0; m < x.piece.size(); ++m) {
        FillTile(x.dtype, whole, random,
                 &tiles.emplace_back(static_cast<size_t>(sizes.in * bytes)));
        made.emplace_back(static_cast<size_t>(sizes.out * bytes), 'x');
      }
      for (size_t m = 0; m < x.piece.size(); ++m) {
        inputs.push_back(tiles[m].data());
        outputs.push_back(made[m].data());
      }
      const TiledExchange tiled = {&x, inputs, outputs};
      SerialParallel serial;
      EXPECT_TRUE(RunExchanges({&tiled, 1}, serial).ok());
    }
  }
};

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_TESTING_DEVICE_TILES_H_
