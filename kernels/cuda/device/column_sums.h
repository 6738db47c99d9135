// Sums over the rows of matrices, column by column, in one launch without scratch.
//
// A block owns a strip of kStripGroups neighbouring groups of columns (groups.h) and all rows of
// it: thread t has group t % kStripGroups and rows t / kStripGroups, + blockDim.x / kStripGroups,
// .... Its rows ascend in runs whose sums are added in order; then the lanes of a warp that share a
// group are joined in a tree, and the warps in ascending order. So the order of a sum depends on
// the number of rows alone.

#ifndef MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_
#define MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/groups.h"
#include "kernels/cuda/device/strip_shape.h"

namespace mgc::cuda {

// kSums sums at once for a group of kCount columns.
template <int kSums, int kCount>
struct SumsOfGroup {
  float at[kSums][kCount] = {};
};

// The sums of this thread's rows: add(row, sums) for each.
template <int kSums, int kCount, class Add>
__device__ SumsOfGroup<kSums, kCount> SumOwnRows(int64_t rows, const Add& add) {
  constexpr int kRun = 16;
  const int lanes = static_cast<int>(blockDim.x) / kStripGroups;
  SumsOfGroup<kSums, kCount> total;
  for (int64_t first = static_cast<int>(threadIdx.x) / kStripGroups; first < rows;
       first += kRun * lanes) {
    SumsOfGroup<kSums, kCount> run;
#pragma unroll 4
    for (int k = 0; k < kRun; ++k) {
      const int64_t row = first + k * lanes;
      if (row < rows) add(row, &run);
    }
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int c = 0; c < kCount; ++c) total.at[s][c] += run.at[s][c];
    }
  }
  return total;
}

// Sums over `rows` rows of the strip that begins at column `strip`, of `cols` columns:
// add(row, first column, sums) adds what a row gives to a group, put(sum, column, value) takes a
// result. All threads of the block call it.
template <int kSums, int kCount, class Add, class Put>
__device__ void SumStrip(int64_t rows, int cols, int strip, const Add& add, const Put& put) {
  constexpr int kStrip = kStripGroups * kCount;
  __shared__ float of_warps[kMostThreads / kWarp][kSums][kStrip];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const int first = strip + thread % kStripGroups * kCount;
  const SumsOfGroup<kSums, kCount> own = SumOwnRows<kSums, kCount>(
      first < cols ? rows : 0,
      [&](int64_t row, SumsOfGroup<kSums, kCount>* sums) { add(row, first, sums); });
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      float sum = own.at[s][c];
#pragma unroll
      for (int with = kWarp / 2; with >= kStripGroups; with /= 2) {
        sum += __shfl_xor_sync(kWholeWarp, sum, with);
      }
      if (lane < kStripGroups) of_warps[thread / kWarp][s][lane * kCount + c] = sum;
    }
  }
  __syncthreads();
  const int s = thread / kStrip, c = thread % kStrip;
  if (s < kSums && strip + c < cols) {
    float sum = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) sum += of_warps[w][s][c];
    put(s, strip + c, sum);
  }
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_
