// Elementwise arithmetic, issued to a stream. A result may be the same array as an operand of its
// size. T is float, Bfloat16 or Float16, with arithmetic of f32 that is rounded once where a result
// is written, or double.

#ifndef MGC_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_
#define MGC_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

inline constexpr int kMostAddends = 16;

// y[i] = ((x0[i] + x1[i]) + x2[i]) + ..., of 1 to kMostAddends operands x[k] with sizes[k]
// elements. The first has n; another may be shorter when its size divides n: it then repeats, as a
// bias does over rows.
template <class T>
int Add(Stream stream, int64_t n, int count, const T* const* x, const int64_t* sizes, T* y);

// y = a - b
template <class T>
int Subtract(Stream stream, int64_t n, const T* a, const T* b, T* y);
// y[i] = a[i] · b[i % b_size]
template <class T>
int Multiply(Stream stream, int64_t n, const T* a, int64_t b_size, const T* b, T* y);
// y = factor · x
template <class T>
int Scale(Stream stream, int64_t n, double factor, const T* x, T* y);
// y = *factor · x
template <class T>
int ScaleBy(Stream stream, int64_t n, const double* factor, const T* x, T* y);

// y = 1 / x, of float or double
template <class T>
int Invert(Stream stream, int64_t n, const T* x, T* y);
// of float or double
template <class T>
int SquareRoot(Stream stream, int64_t n, const T* x, T* y);

// factor[i] = min(1, max[i] / (norm[i] + 1e-6))
int ClipScale(Stream stream, int64_t n, const double* norm, const double* max, double* factor);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ELEMENTWISE_ELEMENTWISE_H_
