// A GPU's blocks on the CPU: what device code says in CUDA's words, executed and watched.
//
// The threads of a block are fibers on the caller's thread. One runs until it meets a barrier, a
// shuffle or its end; then another. When all threads that a barrier is for stand at it, they go on.
// The order in which threads run is drawn with a seed, so that code which leans on an order that no
// barrier makes gives other results from seed to seed. A block that cannot go on (a thread has
// ended, or stands at another barrier) is an error of the launch, as is anything else that the
// hardware would leave undefined and that can be seen here; the first one is kept in Faults().
//
// Blocks run one after the other, in a drawn order. What the emulator leaves out: memory orders
// weaker than the CPU's, time, registers, banks.

#ifndef MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_
#define MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "kernels/cuda/launch_shape.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__
// One block runs at a time on a thread, so a static of the thread is a variable of the block.
#define __shared__ static thread_local

namespace mgc::cuda::emulator {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// What the thread that runs now is and does. Set by the scheduler.
struct Thread {
  Dim3 thread, block, block_size, grid_size;
};
extern thread_local Thread current;

// Seed of the orders of threads and blocks, for the launches that this thread runs from now on.
void SetSeed(uint64_t seed);

// The first thing wrong in any launch since the last call; empty: nothing.
std::string TakeFault();

// Runs all blocks of a launch with this thread's seed. `body` is the kernel with its arguments.
void RunBlocks(const LaunchShape& shape, const std::function<void()>& body);

// Hands a launch to a stream of the emulated runtime (kernels/cuda/emulator/runtime.h).
int Launch(const LaunchShape& shape, Stream stream, std::function<void()> body);

char* DynamicShared();
int64_t DynamicSharedBytes();

// Barriers of the running block and of the lanes `mask` of the running warp.
void BlockBarrier();
void WarpBarrier(unsigned mask);

// Hands 8 bytes to the other lanes in `mask` of the running warp: what lane `from` has given.
// `bytes` <= 16. All lanes in `mask` call it.
void WarpExchange(unsigned mask, const void* given, int bytes, int from, void* got);
// The same for what every lane has given: `all` has 32 entries of `bytes` bytes, zeros where no
// lane is in `mask`.
void WarpGather(unsigned mask, const void* given, int bytes, void* all);

inline int Lane() { return static_cast<int>(current.thread.x % 32); }

template <class T>
T Shuffle(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
  T got;
  WarpExchange(mask, &value, sizeof(T), from, &got);
  return got;
}

}  // namespace mgc::cuda::emulator

#define threadIdx (::mgc::cuda::emulator::current.thread)
#define blockIdx (::mgc::cuda::emulator::current.block)
#define blockDim (::mgc::cuda::emulator::current.block_size)
#define gridDim (::mgc::cuda::emulator::current.grid_size)

inline void __syncthreads() { ::mgc::cuda::emulator::BlockBarrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { ::mgc::cuda::emulator::WarpBarrier(mask); }
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane / width * width + from % width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const int lane = ::mgc::cuda::emulator::Lane();
  const int from = lane ^ with;
  return ::mgc::cuda::emulator::Shuffle(mask, value, from / width == lane / width ? from : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane % width + by < width ? lane + by : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane % width - by >= 0 ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  int all[32];
  ::mgc::cuda::emulator::WarpGather(mask, &predicate, sizeof predicate, all);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= (all[lane] != 0 ? 1u : 0u) << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p) == mask; }

// Threads of a block never run at the same time here, and blocks neither.
template <class T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T>
T atomicMax(T* at, T value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
template <class T>
T __ldg(const T* p) {
  return *p;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

#endif  // MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_
