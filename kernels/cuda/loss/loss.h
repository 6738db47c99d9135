// The pieces of a vocabulary-parallel cross-entropy over local logits [rows, cols], of which the
// first `valid` columns are real: the others never contribute and get zero gradients. With m the
// maximum and z the sum of exp(l - m) over the whole vocabulary, the loss of a row is m + log z -
// l[target]. Logits are of T (float, Bfloat16 or Float16); all else is of f32. A row has at most
// kMostRowElements elements (kernels/cuda/device/row_shape.h).

#ifndef MGC_KERNELS_CUDA_LOSS_LOSS_H_
#define MGC_KERNELS_CUDA_LOSS_LOSS_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"
#include "kernels/shared/logits_shape.h"

namespace mgc::cuda {

// z[r] = sum over valid c of exp(logits[r, c] - m[r])
template <class T>
int ExpSum(Stream stream, const LogitsShape& shape, const T* logits, const float* m, float* z);

// dlogits[r, c] = exp(logits[r, c] - m[r]) · dz[r], zero beyond valid; may be `logits`.
template <class T>
int ExpSumGrad(Stream stream, const LogitsShape& shape, const T* logits, const float* m,
               const float* dz, T* dlogits);

// lse[i] = m[i] + log z[i]
int LogShift(Stream stream, int64_t n, const float* z, const float* m, float* lse);

// weights[i] = 0 where ids[i] is `ignore`, else 1
int Counted(Stream stream, int64_t n, int64_t ignore, const int64_t* ids, float* weights);

// picked[r] = logits[r, ids[r] - offset], zero where the id is not among the valid columns.
template <class T>
int Pick(Stream stream, const LogitsShape& shape, const T* logits, const int64_t* ids,
         float* picked);

// dlogits[r, c] = dp[r] where c is the id's valid column, else 0.
template <class T>
int PickGrad(Stream stream, const LogitsShape& shape, const int64_t* ids, const float* dp,
             T* dlogits);

// ExpSumGrad + PickGrad in one pass; dlogits may be `logits`.
template <class T>
int CrossEntropyGrad(Stream stream, const LogitsShape& shape, const T* logits, const float* m,
                     const float* dz, const int64_t* ids, const float* dp, T* dlogits);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_LOSS_LOSS_H_
