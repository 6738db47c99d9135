// Sums over the rows of matrices, column by column.
//
// A block owns a strip of kStripGroups neighbouring groups of columns (groups.h) and all rows of
// it: thread t has group t % kStripGroups and rows t / kStripGroups, + blockDim.x / kStripGroups,
// .... Its rows ascend in runs whose sums are added in order; then the lanes of a warp that share a
// group are joined in a tree, and the warps in ascending order, in double. Where there is room, the
// rows are cut into parts, each a block's, and a second launch adds these in order. So the order of
// a sum depends on the numbers of rows and columns alone.

#ifndef MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_
#define MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/groups.h"
#include "kernels/cuda/device/strip_shape.h"

namespace mgc::cuda {

// kSums sums at once for a group of kCount columns: that of column c of sum s is s * kCount + c.
template <int kSums, int kCount>
struct SumsOfGroup {
  static constexpr int kValues = kSums * kCount;

  float at[kValues] = {};
};

// The sums of this thread's rows: add(row, sums) for each.
template <class Sums, class Add>
__device__ Sums SumOwnRows(int64_t rows, const Add& add) {
  constexpr int kRun = 16;
  const int lanes = static_cast<int>(blockDim.x) / kStripGroups;
  Sums total;
  for (int64_t first = static_cast<int>(threadIdx.x) / kStripGroups; first < rows;
       first += kRun * lanes) {
    Sums run;
#pragma unroll 4
    for (int k = 0; k < kRun; ++k) {
      const int64_t row = first + k * lanes;
      if (row < rows) add(row, &run);
    }
#pragma unroll
    for (int v = 0; v < Sums::kValues; ++v) total.at[v] += run.at[v];
  }
  return total;
}

// Sums `values` over the lanes that share a group. Lanes kWith apart halve what they hold: each
// gives half of it to the other, until it holds one value, which values[0] becomes. Which one it
// was is the result.
template <int kHeld, int kWith>
__device__ int SumOfGroupLanes(float* values, int lane) {
  if constexpr (kWith < kStripGroups) {
    static_assert(kHeld == 1);
    return 0;
  } else if constexpr (kHeld == 1) {
    values[0] += __shfl_xor_sync(kWholeWarp, values[0], kWith);
    return SumOfGroupLanes<1, kWith / 2>(values, lane);
  } else {
    constexpr int kHalf = kHeld / 2;
    const bool upper = (lane & kWith) != 0;
#pragma unroll
    for (int v = 0; v < kHalf; ++v) {
      const float mine = upper ? values[kHalf + v] : values[v];
      const float others = upper ? values[v] : values[kHalf + v];
      values[v] = mine + __shfl_xor_sync(kWholeWarp, others, kWith);
    }
    return (upper ? kHalf : 0) + SumOfGroupLanes<kHalf, kWith / 2>(values, lane);
  }
}

// The rows of one of `parts` parts.
struct RowPart {
  int64_t begin, end;

  __device__ static RowPart Of(int64_t rows, int part, int parts) {
    return {rows * part / parts, rows * (part + 1) / parts};
  }
};

// Adds parts of sums that lie behind each other, `size` floats each: put(i, sum).
template <class Put>
struct AddParts {
  int parts;
  int64_t size;
  const float* from;
  Put put;

  __device__ void operator()(int64_t i) const {
    double sum = 0;
    for (int part = 0; part < parts; ++part) sum += from[part * size + i];
    put(i, static_cast<float>(sum));
  }
};

// Sums over `rows` rows of the strip that begins at column `strip`, of `cols` columns:
// add(row, first column, sums) adds what a row gives to a group, put(sum, column, value) takes a
// result. All threads of the block call it.
template <int kSums, int kCount, class Add, class Put>
__device__ void SumStrip(const RowPart& rows, int cols, int strip, const Add& add, const Put& put) {
  using Sums = SumsOfGroup<kSums, kCount>;
  constexpr int kValues = Sums::kValues;
  // Lanes that differ in these bits hold the same value in the end.
  constexpr int kSameValue = (kWarp / kValues - 1) & ~(kStripGroups - 1);
  __shared__ float of_warps[kMostThreads / kWarp][kStripGroups][kValues];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const int own = thread % kStripGroups;
  const int first = strip + own * kCount;
  Sums sums = SumOwnRows<Sums>(first < cols ? rows.end - rows.begin : 0,
                               [&](int64_t row, Sums* run) { add(rows.begin + row, first, run); });
  const int value = SumOfGroupLanes<kValues, kWarp / 2>(sums.at, lane);
  if ((lane & kSameValue) == 0) of_warps[thread / kWarp][own][value] = sums.at[0];
  __syncthreads();
  const int group = thread / kValues, v = thread % kValues;
  const int column = strip + group * kCount + v % kCount;
  if (group < kStripGroups && column < cols) {
    double sum = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) sum += of_warps[w][group][v];
    put(v / kCount, column, static_cast<float>(sum));
  }
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_COLUMN_SUMS_H_
