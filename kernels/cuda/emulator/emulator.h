// A GPU's blocks on the CPU: what device code says in CUDA's words, executed and watched.
//
// The threads of a block are executed one after the other on one thread of the host. One runs until
// it meets a barrier, a shuffle or its end; then another. When all threads that a barrier is for
// stand at it, they go on. The order of threads, warps and blocks is the seed's: ascending with
// seed 0, descending with 1, drawn anew after each barrier with others; a warp may run ahead of all
// others to the block's next barrier. So code which leans on an order that no barrier makes gives
// other results from seed to seed.
//
// What is wrong in a launch is a fault (TakeFault), and the launch ends there: a barrier that not
// all threads of the block reach, or at two places of the source at once; lanes that do different
// things together, or one that its own mask leaves out; dynamic shared memory written beyond its
// end, and device memory beyond the ends of allocations (kernels/cuda/emulator/runtime.h). What is
// undefined is made visible: device memory when it is allocated, shared memory when a block begins
// and what a shuffle gets of lanes outside of the mask hold bytes of 0xff, NaNs.
//
// What the emulator leaves out: memory orders weaker than the CPU's, and those between what threads
// and what tensor cores see of shared memory; time, registers, banks.

#ifndef MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_
#define MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/launch_shape.h"

// The names are CUDA's. NOLINTBEGIN(bugprone-reserved-identifier)
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

// A place in the source, of the caller where it is a default argument.
struct Site {
  const char* file = "";
  int line = 0;

  bool operator==(const Site& other) const {
    return line == other.line && std::strcmp(file, other.file) == 0;
  }
};
#define MGC_SITE ::mgc::cuda::emulator::Site site = {__builtin_FILE(), __builtin_LINE()}

// Seed of the orders of threads and blocks, for what this thread launches from now on, and of the
// order of streams.
void SetSeed(uint64_t seed);

// The first fault since the last call, of any thread; empty: none. Errors that stay are over.
std::string TakeFault();

// Runs all blocks of a launch with this thread's seed. `body` is the kernel with its arguments.
void RunBlocks(const LaunchShape& shape, const std::function<void()>& body);

// A pointer that a kernel is given.
struct LaunchedPointer {
  const void* at = nullptr;
  bool written = false;  // may be: it does not point to a constant
};
struct LaunchedKernel {
  const void* function = nullptr;
  std::vector<LaunchedPointer> pointers;
};

// Hands a launch to a stream of the emulated runtime (kernels/cuda/emulator/runtime.h). What is
// known of the kernel is used to find mistakes.
int Launch(const LaunchShape& shape, Stream stream, std::function<void()> body,
           const LaunchedKernel& kernel = {});

// Whether an argument has pointers inside, which it tells of: `ForEachPointer(f)` calls
// `f(at, written)`.
template <class T, class = void>
struct TellsPointers : std::false_type {};
template <class T>
struct TellsPointers<T, std::void_t<decltype(std::declval<const T&>().ForEachPointer(
                            std::declval<void (*)(const void*, bool)>()))>> : std::true_type {};

// The same for a kernel and its arguments.
template <class... Formals>
int LaunchKernel(void (*kernel)(Formals...), const LaunchShape& shape, Stream stream,
                 const std::tuple<Formals...>& arguments) {
  LaunchedKernel known;
  known.function = reinterpret_cast<const void*>(kernel);
  const auto note = [&](const auto& argument) {
    using T = std::decay_t<decltype(argument)>;
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>) {
      known.pointers.push_back({argument, !std::is_const_v<std::remove_pointer_t<T>>});
    } else if constexpr (TellsPointers<T>::value) {
      argument.ForEachPointer([&](const void* at, bool written) {
        known.pointers.push_back({at, written});
      });
    }
  };
  std::apply([&](const auto&... each) { (note(each), ...); }, arguments);
  const auto body = [kernel, arguments] { std::apply(kernel, arguments); };
  return Launch(shape, stream, body, known);
}

char* DynamicShared();
int64_t DynamicSharedBytes();

// Barriers of the running block and of the lanes `mask` of the running warp.
void BlockBarrier(MGC_SITE);
void WarpBarrier(unsigned mask, MGC_SITE);

// Gives what lane `from` of the running warp has given. `bytes` <= 16. All lanes in `mask` call it.
void WarpExchange(unsigned mask, const void* given, int bytes, int from, void* got, MGC_SITE);
// The same for what every lane has given: `all` has 32 entries of `bytes` bytes, zeros where no
// lane is in `mask`.
void WarpGather(unsigned mask, const void* given, int bytes, void* all, MGC_SITE);

inline int Lane() { return static_cast<int>(current.thread.x % 32); }

template <class T>
T Shuffle(unsigned mask, T value, int from, MGC_SITE) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
  T got;
  WarpExchange(mask, &value, sizeof(T), from, &got, site);
  return got;
}

}  // namespace mgc::cuda::emulator

#define threadIdx (::mgc::cuda::emulator::current.thread)
#define blockIdx (::mgc::cuda::emulator::current.block)
#define blockDim (::mgc::cuda::emulator::current.block_size)
#define gridDim (::mgc::cuda::emulator::current.grid_size)

inline void __syncthreads(MGC_SITE) { ::mgc::cuda::emulator::BlockBarrier(site); }
inline void __syncwarp(unsigned mask = 0xffffffffu, MGC_SITE) {
  ::mgc::cuda::emulator::WarpBarrier(mask, site);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32, MGC_SITE) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane / width * width + from % width, site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, MGC_SITE) {
  const int lane = ::mgc::cuda::emulator::Lane();
  const int from = lane ^ with;
  return ::mgc::cuda::emulator::Shuffle(mask, value, from / width == lane / width ? from : lane,
                                        site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int by, int width = 32, MGC_SITE) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane % width + by < width ? lane + by : lane,
                                        site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int by, int width = 32, MGC_SITE) {
  const int lane = ::mgc::cuda::emulator::Lane();
  return ::mgc::cuda::emulator::Shuffle(mask, value, lane % width - by >= 0 ? lane - by : lane,
                                        site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, MGC_SITE) {
  int all[32];
  ::mgc::cuda::emulator::WarpGather(mask, &predicate, sizeof predicate, all, site);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= (all[lane] != 0 ? 1u : 0u) << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int p, MGC_SITE) { return __ballot_sync(mask, p, site) != 0; }
inline int __all_sync(unsigned mask, int p, MGC_SITE) {
  return __ballot_sync(mask, p, site) == mask;
}

// Threads of a block never run at the same time here, and blocks neither. Atomics order nothing,
// but are no races (kernels/cuda/emulator/access.h).
#define MGC_ATOMIC __attribute__((no_sanitize("thread")))
template <class T>
MGC_ATOMIC T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T>
MGC_ATOMIC T atomicMax(T* at, T value) {
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

// NOLINTEND(bugprone-reserved-identifier)

#endif  // MGC_KERNELS_CUDA_EMULATOR_EMULATOR_H_
