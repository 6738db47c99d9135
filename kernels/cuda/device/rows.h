// Kernels over rows: a row is a team's, which is a warp for short rows and a block for long ones.
// Thread `rank` of a team of `size` owns groups rank, rank + size, ... of the row (groups.h).

#ifndef MGC_KERNELS_CUDA_DEVICE_ROWS_H_
#define MGC_KERNELS_CUDA_DEVICE_ROWS_H_

#include "kernels/cuda/api.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/groups.h"
#include "kernels/cuda/device/reduce.h"
#include "kernels/cuda/device/row_shape.h"

namespace mgc::cuda {

// All threads of a team take part in its sums and maxima.
template <bool kIsBlock>
struct RowTeam {
  int rank, size;

  __device__ double Sum(double value) const {
    if constexpr (kIsBlock) return BlockSum(value);
    return WarpSum(value);
  }
  __device__ float Max(float value) const {
    if constexpr (kIsBlock) return BlockMax(value);
    return WarpMax(value);
  }
};

// function(row, team) for every row.
template <bool kIsBlock, class Function>
__global__ void __launch_bounds__(kMostTeam) RowsKernel(Function function, int64_t rows) {
  const int thread = static_cast<int>(threadIdx.x), size = static_cast<int>(blockDim.x);
  if constexpr (kIsBlock) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
      function(row, RowTeam<true>{thread, size});
    }
  } else {
    const int64_t teams = size / kWarp;
    for (int64_t row = blockIdx.x * teams + thread / kWarp; row < rows; row += gridDim.x * teams) {
      function(row, RowTeam<false>{thread % kWarp, kWarp});
    }
  }
}

// For rows of `cols` elements of T; those of more than kMostRowElements are refused.
template <class T, class Function>
int ForRows(Stream stream, int64_t rows, int64_t cols, Function function) {
  if (cols > kMostRowElements) return static_cast<int>(cudaErrorInvalidValue);
  const int64_t groups = (cols + kPerVector<T> - 1) / kPerVector<T>;
  const LaunchShape shape = RowShape(rows, groups);
  return Launch(IsBlockRow(groups) ? RowsKernel<true, Function> : RowsKernel<false, Function>,
                shape, stream, function, rows);
}

// The groups of a row that a thread owns. The first kHeld stay in registers: they are read once,
// however often they are gone through.
template <class T, int kHeld = 4>
class OwnGroups {
 public:
  __device__ OwnGroups(const T* row, int cols, bool whole, int rank, int size)
      : row_(row), cols_(cols), whole_(whole), rank_(rank), size_(size) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const int first = FirstOf(k);
      if (first < cols) held_[k] = LoadGroup(row, first, cols, whole);
    }
  }

  // Group number k of the thread, held or read again.
  __device__ Group<T> Far(int first) const { return LoadGroup(row_, first, cols_, whole_); }
  __device__ const Group<T>& Held(int k) const { return held_[k]; }
  __device__ int FirstOf(int k) const { return (rank_ + k * size_) * kPerVector<T>; }

  // each(first column, group) in ascending order.
  template <class Each>
  __device__ void For(const Each& each) const {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      const int first = FirstOf(k);
      if (first < cols_) each(first, held_[k]);
    }
    for (int k = kHeld; FirstOf(k) < cols_; ++k) each(FirstOf(k), Far(FirstOf(k)));
  }

 private:
  const T* row_;
  int cols_;
  bool whole_;
  int rank_, size_;
  Group<T> held_[kHeld];
};

// each(first column, group of a, group of b) for rows of one size, in ascending order.
template <class T, int kHeld, class Each>
__device__ void ForBoth(const OwnGroups<T, kHeld>& a, const OwnGroups<T, kHeld>& b, int cols,
                        const Each& each) {
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int first = a.FirstOf(k);
    if (first < cols) each(first, a.Held(k), b.Held(k));
  }
  for (int k = kHeld; a.FirstOf(k) < cols; ++k) {
    const int first = a.FirstOf(k);
    each(first, a.Far(first), b.Far(first));
  }
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_ROWS_H_
