// Tensor cores of sm_90a as a warpgroup uses them: four warps on end multiply matrices that lie in
// shared memory, while they do other things. Functions of one instruction each, beside what the
// emulator does instead: there a product happens when it is waited for, and not before.
//
// A warp of the group has the 16 rows of the sums that tensor_layout.h gives its place: register i
// of block n of its lanes is SumCell(lane, i) of columns from 8n on.

#ifndef MGC_KERNELS_CUDA_DEVICE_WARPGROUP_H_
#define MGC_KERNELS_CUDA_DEVICE_WARPGROUP_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/tensor_core.h"
#include "kernels/cuda/device/tensor_layout.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/group_products.h"
#endif

namespace mgc::cuda {

inline constexpr int kWarpgroup = 4 * kWarp;

// Threads of a block that a kernel of warpgroups may be launched with: none to speak of where it is
// compiled for a GPU without them.
#if defined(MGC_CUDA_EMULATED) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHasWarpgroups = true;
#else
inline constexpr bool kHasWarpgroups = false;
#endif
constexpr int ThreadsOfGroups(int threads) { return kHasWarpgroups ? threads : kWarp; }

// An operand in shared memory; its layout is across or not, as the type says.
template <bool kAcross>
struct SharedMatrix {
  const void* at;
  SharedLayout layout;
};

#ifdef MGC_CUDA_EMULATED

// Whether the GPU that is current has warpgroups and the kernel is made for them.
template <class Kernel>
bool TakesGroups(Kernel* /*kernel*/) {
  return emulator::HasGroups();
}

template <class T, bool kAcross>
float ElementOf(const SharedMatrix<kAcross>& matrix, int row, int deep) {
  const auto at = reinterpret_cast<uintptr_t>(matrix.at);
  const uint64_t from =
      Exchanged(matrix.layout, at + static_cast<uint64_t>(PlaceIn(matrix.layout, row, deep)));
  return Load(*reinterpret_cast<const T*>(from));
}

template <class T, bool kAcross, int kBlocks>
void MultiplyRows(const float (&rows)[2][16], const SharedMatrix<kAcross>& right, bool add,
                  float (&sums)[kBlocks][4]) {
  for (int n = 0; n < kBlocks; ++n) {
    for (int c = 0; c < 2; ++c) {
      float column[16];
      const int at = 8 * n + SumCell(emulator::Lane(), c).column;
      for (int k = 0; k < 16; ++k) column[k] = ElementOf<T>(right, at, k);
      for (int r = 0; r < 2; ++r) {
        float& sum = sums[n][2 * r + c];
        if (!add) sum = 0.0f;
        for (int k = 0; k < 16; ++k) sum += rows[r][k] * column[k];
      }
    }
  }
}

// Starts sums = (add ? sums : 0) + left · right (wgmma.mma_async). T is Bfloat16 or Float16. The
// left operand's 16 rows of the warp stand in registers, which stay as they are until the product
// has been waited for; so do the sums.
template <class T, bool kAcross, int kBlocks>
void StartProduct(const LeftOperand& left, const SharedMatrix<kAcross>& right, bool add,
                  float (&sums)[kBlocks][4]) {
  emulator::GroupProducts::OfThread().Start([&left, right, add, &sums] {
    LeftOperand lefts[kWarp];
    emulator::WarpGather(kWholeWarp, &left, sizeof left, lefts);
    float rows[2][16];
    const int first = emulator::Lane() / 4 * 4;
    for (int e = 0; e < 32; ++e) {
      const int lane = first + e / 8, i = e / 2 % 4, half = e % 2;
      const MatrixCell at = LeftCell(lane, i);
      const uint32_t pair = lefts[lane].at[i];
      rows[at.row / 8][at.column + half] = HalfOf<T>(pair, half);
    }
    MultiplyRows<T>(rows, right, add, sums);
  });
}

// The same with the 64 rows of the left operand in shared memory.
template <class T, bool kLeftAcross, bool kAcross, int kBlocks>
void StartProduct(const SharedMatrix<kLeftAcross>& left, const SharedMatrix<kAcross>& right,
                  bool add, float (&sums)[kBlocks][4]) {
  emulator::GroupProducts::OfThread().Start([left, right, add, &sums] {
    float rows[2][16];
    const int warp = static_cast<int>(threadIdx.x) / kWarp % 4;
    for (int r = 0; r < 2; ++r) {
      const int row = 16 * warp + SumCell(emulator::Lane(), 2 * r).row;
      for (int k = 0; k < 16; ++k) rows[r][k] = ElementOf<T>(left, row, k);
    }
    MultiplyRows<T>(rows, right, add, sums);
  });
}

// Before the first product that is to see what was written to registers.
inline void BeginProducts() {}
// Ends a group of products of this warpgroup.
inline void CommitProducts() { emulator::GroupProducts::OfThread().Commit(); }
// Waits until at most kLeft of the groups are on their way.
template <int kLeft>
void WaitProducts() {
  emulator::GroupProducts::OfThread().Wait(kLeft);
}
// What was written to shared memory can be read by products behind the next barrier.
inline void PublishShared() {}
// Adds to floats that only this thread adds to, in the order of its calls, and waits for none.
inline void AddTo(Vector<float, 4>* to, const float (&x)[4]) {
  for (int i = 0; i < 4; ++i) to->at[i] += x[i];
}
// A register that a product has read or written, and that has been waited for.
template <class X>
void Settle(X& /*x*/) {}

#else

// The threads that it was compiled for say so.
template <class Kernel>
bool TakesGroups(Kernel* kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
         attributes.maxThreadsPerBlock >= kWarpgroup;
}

template <bool kAcross>
__device__ __forceinline__ uint64_t DescriptorOf(const SharedMatrix<kAcross>& matrix) {
  return DescriptorOf(matrix.layout, SharedAddress(matrix.at));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The registers of block n.
#define MGC_BLOCK(n) "+f"(sums[n][0]), "+f"(sums[n][1]), "+f"(sums[n][2]), "+f"(sums[n][3])
#define MGC_4_BLOCKS(n) MGC_BLOCK(n), MGC_BLOCK(n + 1), MGC_BLOCK(n + 2), MGC_BLOCK(n + 3)
#define MGC_8_BLOCKS(n) MGC_4_BLOCKS(n), MGC_4_BLOCKS(n + 4)
#define MGC_16_BLOCKS(n) MGC_8_BLOCKS(n), MGC_8_BLOCKS(n + 8)
// Their names in an instruction, and those of what comes behind them.
#define MGC_4_NAMES "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define MGC_8_NAMES                                        \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define MGC_16_NAMES                                                 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

#define MGC_PRODUCT_4(type)                                                                \
  "{.reg .pred p; setp.ne.b32 p, %21, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32." type \
  "." type " {" MGC_4_NAMES "}, {%16,%17,%18,%19}, %20, p, 1, 1, %22;}"
#define MGC_SHARED_PRODUCT_4(type)                                                         \
  "{.reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32." type \
  "." type " {" MGC_4_NAMES "}, %16, %17, p, 1, 1, %19, %20;}"
#define MGC_PRODUCT_8(type)                                                                \
  "{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type \
  "." type " {" MGC_8_NAMES "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;}"
#define MGC_SHARED_PRODUCT_8(type)                                                         \
  "{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type \
  "." type " {" MGC_8_NAMES "}, %32, %33, p, 1, 1, %35, %36;}"
#define MGC_PRODUCT_16(type)                                                                \
  "{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type \
  "." type " {" MGC_16_NAMES "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70;}"
#define MGC_SHARED_PRODUCT_16(type)                                                         \
  "{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type \
  "." type " {" MGC_16_NAMES "}, %64, %65, p, 1, 1, %67, %68;}"

#define MGC_START(b)                                                        \
  if constexpr (kBlocks == b && std::is_same_v<T, Bfloat16>) {              \
    asm volatile(MGC_PRODUCT_##b("bf16") : MGC_##b##_BLOCKS(0) : MGC_LEFT); \
  } else if constexpr (kBlocks == b) {                                      \
    asm volatile(MGC_PRODUCT_##b("f16") : MGC_##b##_BLOCKS(0) : MGC_LEFT);  \
  }
#define MGC_LEFT                                                                                \
  "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "l"(DescriptorOf(right)), \
      "r"(add ? 1 : 0), "n"(kAcross ? 1 : 0)
template <class T, bool kAcross, int kBlocks>
__device__ __forceinline__ void StartProduct(const LeftOperand& left,
                                             const SharedMatrix<kAcross>& right, bool add,
                                             float (&sums)[kBlocks][4]) {
  static_assert(kBlocks == 4 || kBlocks == 8 || kBlocks == 16);
  MGC_START(4)
  MGC_START(8)
  MGC_START(16)
}

#define MGC_START_SHARED(b)                                                               \
  if constexpr (kBlocks == b && std::is_same_v<T, Bfloat16>) {                            \
    asm volatile(MGC_SHARED_PRODUCT_##b("bf16") : MGC_##b##_BLOCKS(0) : MGC_SHARED_LEFT); \
  } else if constexpr (kBlocks == b) {                                                    \
    asm volatile(MGC_SHARED_PRODUCT_##b("f16") : MGC_##b##_BLOCKS(0) : MGC_SHARED_LEFT);  \
  }
#define MGC_SHARED_LEFT                                                                          \
  "l"(DescriptorOf(left)), "l"(DescriptorOf(right)), "r"(add ? 1 : 0), "n"(kLeftAcross ? 1 : 0), \
      "n"(kAcross ? 1 : 0)
template <class T, bool kLeftAcross, bool kAcross, int kBlocks>
__device__ __forceinline__ void StartProduct(const SharedMatrix<kLeftAcross>& left,
                                             const SharedMatrix<kAcross>& right, bool add,
                                             float (&sums)[kBlocks][4]) {
  static_assert(kBlocks == 4 || kBlocks == 8 || kBlocks == 16);
  MGC_START_SHARED(4)
  MGC_START_SHARED(8)
  MGC_START_SHARED(16)
}

__device__ __forceinline__ void BeginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
__device__ __forceinline__ void PublishShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void AddTo(Vector<float, 4>* to, const float (&x)[4]) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(to), "f"(x[0]),
               "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}

#undef MGC_BLOCK
#undef MGC_4_BLOCKS
#undef MGC_8_BLOCKS
#undef MGC_16_BLOCKS
#undef MGC_4_NAMES
#undef MGC_8_NAMES
#undef MGC_16_NAMES
#undef MGC_PRODUCT_4
#undef MGC_PRODUCT_8
#undef MGC_PRODUCT_16
#undef MGC_SHARED_PRODUCT_4
#undef MGC_SHARED_PRODUCT_8
#undef MGC_SHARED_PRODUCT_16
#undef MGC_START
#undef MGC_LEFT
#undef MGC_START_SHARED
#undef MGC_SHARED_LEFT

#else

// Kernels that are compiled for other GPUs are launched by nobody.
template <class T, class Left, class Right, class Sums>
__device__ void StartProduct(const Left& /*left*/, const Right& /*right*/, bool /*add*/,
                             Sums& /*sums*/) {}
__device__ inline void BeginProducts() {}
__device__ inline void CommitProducts() {}
template <int kLeft>
__device__ void WaitProducts() {}
__device__ inline void PublishShared() {}
__device__ inline void AddTo(Vector<float, 4>* /*to*/, const float (&/*x*/)[4]) {}

#endif

// Of registers.
__device__ __forceinline__ void Settle(float& x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ __forceinline__ void Settle(uint32_t& x) { asm volatile("" : "+r"(x)::"memory"); }

#endif

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_WARPGROUP_H_
