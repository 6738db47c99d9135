// What the kernels of attention by warpgroups share: tiles in shared memory, and products of them.
// Device code only.
//
// They are those of attention_tensor.h but for the products: a block has two warpgroups, each of
// which owns 64 rows of one side of the pairs, 16 a warp, and goes through tiles of rows of the
// other side. Products run beside what else a warpgroup does, until it waits for them.

#ifndef MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_H_
#define MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_H_

#include "kernels/cuda/attention/attention_group_shape.h"
#include "kernels/cuda/attention/attention_tensor.h"
#include "kernels/cuda/device/warpgroup.h"

namespace mgc::cuda {

// A tile of kRows rows of kDim elements, of which an operand has `dim`; zeros beyond. Each 64 dims
// of all rows lie together, a row in 128 bytes.
template <class T, int kDim, int kRows>
struct GroupRows {
  static constexpr int kChunk = 8;  // elements of 16 bytes
  static constexpr int kChunks = kDim / kChunk;
  static constexpr int kElements = kRows * kDim;
  static constexpr int kLine = 128, kStride = 8 * kLine, kLeading = kRows * kLine;
  T* at;

  __device__ __forceinline__ T* Chunk(int row, int chunk) const {
    return at + chunk / 8 * (kRows * 64) + SwizzledChunk(8, row, chunk % 8) * kChunk;
  }
  // Dims [16 step, 16 step + 16) of the rows from `row` on, as deep as these dims.
  __device__ __forceinline__ SharedMatrix<false> Along(int row, int step) const {
    return {at + step / 4 * (kRows * 64) + row * 64 + step % 4 * 16, {kLine, false, kStride, 0}};
  }
  // Rows [16 step, 16 step + 16) as the depth, the dims from 64 · part on across.
  __device__ __forceinline__ SharedMatrix<true> Across(int step, int part = 0) const {
    return {at + part * (kRows * 64) + step * (16 * 64), {kLine, true, kStride, kLeading}};
  }
};

// A band, rounded, as left operands that are kColumns deep.
template <int kColumns>
struct PackedBand {
  LeftOperand at[kColumns / 16];

  template <class T>
  __device__ __forceinline__ static PackedBand Of(const Band<kColumns>& band) {
    PackedBand packed;
#pragma unroll
    for (int step = 0; step < kColumns / 16; ++step) {
      packed.at[step] = band.template Left<T>(step);
    }
    return packed;
  }
};

template <int kColumns>
__device__ __forceinline__ void Settle(Band<kColumns>& band) {
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) Settle(band.at[n][i]);
  }
}
template <int kColumns>
__device__ __forceinline__ void Settle(PackedBand<kColumns>& packed) {
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) Settle(packed.at[step].at[i]);
  }
}

// Waits until at most kLeft of this warpgroup's groups of products are on their way; `settled` are
// the operands and sums in registers of those that are done.
template <int kLeft, class... Settled>
__device__ __forceinline__ void Await(Settled&... settled) {
  WaitProducts<kLeft>();
  (Settle(settled), ...);
}

// Starts band = the 64 rows of `left` from `row` on, times the rows of `right`, transposed.
template <class T, int kDim, int kRows, int kColumns>
__device__ __forceinline__ void StartDots(const GroupRows<T, kDim, kRows>& left, int row,
                                          const GroupRows<T, kDim, kColumns>& right,
                                          Band<kColumns>* band) {
  Settle(*band);
  BeginProducts();
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    StartProduct<T>(left.Along(row, step), right.Along(0, step), step > 0, band->at);
  }
  CommitProducts();
}

// Starts sums += weights times the rows of `x`.
template <class T, int kDim, int kColumns>
__device__ __forceinline__ void StartSums(PackedBand<kColumns>* weights,
                                          const GroupRows<T, kDim, kColumns>& x, Band<kDim>* sums) {
  Settle(*weights);
  Settle(*sums);
  BeginProducts();
#pragma unroll
  for (int step = 0; step < kColumns / 16; ++step) {
    StartProduct<T>(weights->at[step], x.Across(step), true, sums->at);
  }
  CommitProducts();
}

// The warpgroup's first row of the block's.
__device__ __forceinline__ int GroupRow() {
  return static_cast<int>(threadIdx.x) / kWarpgroup * 64;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ATTENTION_ATTENTION_GROUP_H_
