// Elementwise arithmetic. Every result element depends on its own operands only, so
// that any split gives the same bits. A result may be the same array as an operand.
#ifndef MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/parallel.h"

namespace mgc::cpu {

// y[i] = ((x0[i] + x1[i]) + x2[i]) + ..., at least one operand. An operand may be shorter than n
// when its size divides n: it then repeats, as a bias does over rows.
struct Addend {
  const float* data;
  int64_t size;
};
void Add(Parallel& parallel, int64_t n, absl::Span<const Addend> x, float* y);

// y = a - b
void Subtract(Parallel& parallel, int64_t n, const float* a, const float* b, float* y);
// y[i] = a[i] * b[i % b_size]
void Multiply(Parallel& parallel, int64_t n, const float* a, int64_t b_size, const float* b,
              float* y);
// y = factor * x
void Scale(Parallel& parallel, int64_t n, float factor, const float* x, float* y);
// y = 1 / x
void Invert(Parallel& parallel, int64_t n, const float* x, float* y);
void SquareRoot(Parallel& parallel, int64_t n, const float* x, float* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
