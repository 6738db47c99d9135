// Elementwise arithmetic. Every result element depends on its own operands only, so
// that any split gives the same bits. A result may be the same array as an operand.
#ifndef MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/parallel.h"

namespace mgc::cpu {

// T is float, Bfloat16 or Float16; arithmetic is that of f32, rounded once where a result is
// written.

// y[i] = ((x0[i] + x1[i]) + x2[i]) + ..., at least one operand. The first has n elements; another
// may be shorter when its size divides n: it then repeats, as a bias does over rows.
template <class T>
struct Addend {
  const T* data;
  int64_t size;
};
template <class T>
void Add(Parallel& parallel, int64_t n, absl::Span<const Addend<T>> x, T* y);

// y = a - b
template <class T>
void Subtract(Parallel& parallel, int64_t n, const T* a, const T* b, T* y);
// y[i] = a[i] * b[i % b_size]
template <class T>
void Multiply(Parallel& parallel, int64_t n, const T* a, int64_t b_size, const T* b, T* y);
// y = factor * x
template <class T>
void Scale(Parallel& parallel, int64_t n, float factor, const T* x, T* y);

// y = x, between f32 and bf16.
template <class From, class To>
void Cast(Parallel& parallel, int64_t n, const From* x, To* y);

// y = 1 / x
void Invert(Parallel& parallel, int64_t n, const float* x, float* y);
void SquareRoot(Parallel& parallel, int64_t n, const float* x, float* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
