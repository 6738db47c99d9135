// Ops that leave elements as they are, add to them or drop some, and constants, issued to a stream.

#ifndef MGC_KERNELS_CUDA_IDENTITY_IDENTITY_H_
#define MGC_KERNELS_CUDA_IDENTITY_IDENTITY_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"
#include "kernels/shared/dropout.h"

namespace mgc::cuda {

int FillScalar(Stream stream, double value, double* y);

// y = a + b, of float or double. `y` may be either.
template <class T>
int Accumulate(Stream stream, int64_t n, const T* a, const T* b, T* y);

// Each element rounded to the nearest: between float and each of double, Bfloat16 and Float16.
template <class From, class To>
int Cast(Stream stream, int64_t n, const From* x, To* y);

// y = x · rule.scale where the element is kept, else 0. `grid` is merged and of the sample 0; its
// base moves by `sample_stride` for each sample before `sample`. `y` may be `x`. T is float,
// Bfloat16 or Float16.
template <class T>
int Dropout(Stream stream, const DropoutRule& rule, const IndexGrid& grid, uint64_t sample_stride,
            const SamplePlace& sample, const T* x, T* y);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_IDENTITY_IDENTITY_H_
