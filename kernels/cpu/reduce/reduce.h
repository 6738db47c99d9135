// Sums and maxima. The order of a sum is fixed by the sizes alone: float partial sums over blocks
// of fixed size, added in ascending order, in double where the result is a double.
#ifndef MGC_KERNELS_CPU_REDUCE_REDUCE_H_
#define MGC_KERNELS_CPU_REDUCE_REDUCE_H_

#include <cstdint>

#include "kernels/parallel.h"

namespace mgc::cpu {

// Doubles of workspace that the sums of n elements below need.
int64_t SumWorkspaceDoubles(int64_t n);

double Sum(Parallel& parallel, int64_t n, const float* x, double* workspace);
// Squares and products are taken in double.
double SumOfSquares(Parallel& parallel, int64_t n, const float* x, double* workspace);
double SumOfProducts(Parallel& parallel, int64_t n, const float* x, const float* y,
                     double* workspace);

// y[o, i] = sum over r of x[o, r, i], added to y if `accumulate`. With inner = 1 the last dim is
// summed, with outer = 1 the rows are (a bias gradient). T is float, Bfloat16 or Float16.
template <class T>
void SumMiddle(Parallel& parallel, int64_t outer, int64_t reduced, int64_t inner, const T* x,
               bool accumulate, float* y);

// y[r] = max over c < valid of x[r, c], for rows of `cols` elements; -inf where valid is 0.
template <class T, class Result>
void RowMax(Parallel& parallel, int64_t rows, int64_t cols, int64_t valid, const T* x, Result* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_REDUCE_REDUCE_H_
