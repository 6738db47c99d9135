// Tensor cores of sm_80 and later, and what feeds them: functions of one instruction each, beside
// what the emulator does instead. All lanes of a warp call the ones of a warp.

#ifndef MGC_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_
#define MGC_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/tensor_layout.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/async_copies.h"
#endif

namespace mgc::cuda {

// Operands of one product, as tensor_layout.h has them: two elements of T a register.
struct LeftOperand {
  uint32_t at[4];
};
struct RightOperand {
  uint32_t at[2];
};

#ifdef MGC_CUDA_EMULATED

template <class T>
float HalfOf(uint32_t pair, int half) {
  return Load(T{static_cast<uint16_t>(pair >> (16 * half))});
}

// sums += left · right (mma.m16n8k16), of a warp. T is Bfloat16 or Float16.
template <class T>
void MultiplyAdd(const LeftOperand& left, const RightOperand& right, float (&sums)[4]) {
  LeftOperand lefts[kWarp];
  RightOperand rights[kWarp];
  emulator::WarpGather(kWholeWarp, &left, sizeof left, lefts);
  emulator::WarpGather(kWholeWarp, &right, sizeof right, rights);
  // The two rows and the two columns that meet in the lane's sums.
  float rows[2][16], columns[2][16];
  const int first_left = emulator::Lane() / 4 * 4,
            first_right = SumCell(emulator::Lane(), 0).column * 4;
  for (int e = 0; e < 32; ++e) {
    const int lane = e / 8, i = e / 2 % 4, half = e % 2;
    const Cell at = LeftCell(first_left + lane, i);
    rows[at.row / 8][at.column + half] = HalfOf<T>(lefts[first_left + lane].at[i], half);
  }
  for (int e = 0; e < 32; ++e) {
    const int lane = e / 4, i = e / 2 % 2, half = e % 2;
    const Cell at = RightCell(first_right + lane, i);
    columns[lane / 4][at.row + half] = HalfOf<T>(rights[first_right + lane].at[i], half);
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) sums[i] += rows[i / 2][k] * columns[i % 2][k];
  }
}

// Four matrices of 8 x 8 elements of 16 bits (ldmatrix.x4): lane 8m + r names row r of matrix m, 16
// bytes of shared memory. Each lane gets the elements 2(lane % 4) and the next of row lane / 4 of
// every matrix; transposed, of column lane / 4.
template <bool kTransposed>
void LoadMatrices(const void* row, uint32_t (&to)[4]) {
  const uint16_t* rows[kWarp];
  const auto* const mine = static_cast<const uint16_t*>(row);
  emulator::WarpGather(kWholeWarp, &mine, sizeof mine, rows);
  const int across = emulator::Lane() % 4 * 2, down = emulator::Lane() / 4;
  for (int m = 0; m < 4; ++m) {
    const auto element = [&](int r, int c) { return uint32_t{rows[8 * m + r][c]}; };
    to[m] = kTransposed ? element(across, down) | element(across + 1, down) << 16
                        : element(down, across) | element(down, across + 1) << 16;
  }
}

// Starts the copy of 16 bytes to shared memory, or of zeros (cp.async).
inline void CopyAsync(void* shared, const void* from, bool zeros) {
  emulator::AsyncCopies::OfThread().Start(shared, zeros ? nullptr : from, 16);
}
// Ends a group of copies of this thread.
inline void CommitCopies() { emulator::AsyncCopies::OfThread().Commit(); }
// Waits until at most kLeft of the thread's groups are on their way.
template <int kLeft>
void WaitCopies() {
  emulator::AsyncCopies::OfThread().Wait(kLeft);
}

// Two elements of T, the first in the lower half.
template <class T>
uint32_t PackPair(float low, float high) {
  return Store<T>(low).bits | uint32_t{Store<T>(high).bits} << 16;
}

// 2^x within 2^-22 of it; less than 2^-126 is zero.
inline float Exp2(float x) {
  const float y = std::exp2(x);
  return y < 0x1p-126f ? 0.0f : y;
}

// The same number, of which the compiler knows nothing: so that it computes what follows from it
// anew rather than keep many results of it in registers over a loop.
inline int Opaque(int x) { return x; }

#else

template <class T>
__device__ __forceinline__ void MultiplyAdd(const LeftOperand& left, const RightOperand& right,
                                            float (&sums)[4]) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right.at[0]),
          "r"(right.at[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left.at[0]), "r"(left.at[1]), "r"(left.at[2]), "r"(left.at[3]), "r"(right.at[0]),
          "r"(right.at[1]));
  }
}

__device__ __forceinline__ uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

template <bool kTransposed>
__device__ __forceinline__ void LoadMatrices(const void* row, uint32_t (&to)[4]) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(SharedAddress(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(SharedAddress(row))
                 : "memory");
  }
}

__device__ __forceinline__ void CopyAsync(void* shared, const void* from, bool zeros) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(shared)),
               "l"(from), "r"(zeros ? 0 : 16)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

template <class T>
__device__ __forceinline__ uint32_t PackPair(float low, float high) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, Bfloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ int Opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

#endif

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_TENSOR_CORE_H_
