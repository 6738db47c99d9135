// Sums, maxima and broadcasts, issued to a stream. The order of a sum is fixed by the sizes alone.
// T and R, the types of elements and results, are float, Bfloat16 or Float16, and double where that
// is said; results are rounded once.

#ifndef MGC_KERNELS_CUDA_REDUCE_REDUCE_H_
#define MGC_KERNELS_CUDA_REDUCE_REDUCE_H_

#include <cstdint>

#include "kernels/cuda/device/strip_shape.h"
#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// A box of indices as device code takes it: extents and strides, outer to inner.
struct IndexBox {
  static constexpr int kMostDims = 8;

  int64_t size = 1;
  int dims = 0;
  int64_t extents[kMostDims] = {};
  int64_t strides[kMostDims] = {};
};

// y[o, i] = sum over r of x[o, r, i]: with inner = 1 the last dim is summed, with outer = 1 the
// rows are (a bias gradient), in parts where there is room. T and R as instantiated: R is T or
// float.
template <class T, class R>
int SumMiddle(Stream stream, int64_t outer, int64_t reduced, int64_t inner, const PartsRoom& room,
              const T* x, R* y);

// y[i] = sum over j of x[kept(i) + reduced(j)], in double and in order: for what has no better
// form. Of double, too.
template <class T, class R>
int SumAny(Stream stream, const IndexBox& kept, const IndexBox& reduced, const T* x, R* y);

// y[r] = max over c < valid of x[r, c], for rows of `cols` elements; -inf where valid is 0.
template <class T, class R>
int RowMax(Stream stream, int64_t rows, int64_t cols, int64_t valid, const T* x, R* y);

// The maximum of the elements that SumAny sums.
template <class T, class R>
int MaxAny(Stream stream, const IndexBox& kept, const IndexBox& reduced, const T* x, R* y);

// y[i] = x[box(i)], in R. Of double, too.
template <class T, class R>
int Broadcast(Stream stream, const IndexBox& box, const T* x, R* y);

// Bytes of workspace that the sums of n elements below need.
int64_t SumWorkspaceBytes(int64_t n);

// Sums over all of n elements of float or double, in double: of x, x² and x · w.
template <class T>
int Total(Stream stream, int64_t n, const T* x, void* workspace, double* sum);
template <class T>
int SumSquares(Stream stream, int64_t n, const T* x, void* workspace, double* sum);
template <class T>
int WeightedSum(Stream stream, int64_t n, const T* x, const T* w, void* workspace, double* sum);

// y[i] = *x[i]; x itself is memory of the host.
int Stack(Stream stream, int64_t n, const void* const* x, double* y);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_REDUCE_REDUCE_H_
