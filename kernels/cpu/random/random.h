// Random numbers of graph/base/random.h in bulk, and dropout.
#ifndef MGC_KERNELS_CPU_RANDOM_RANDOM_H_
#define MGC_KERNELS_CPU_RANDOM_RANDOM_H_

#include <cstdint>

#include "kernels/parallel.h"
#include "kernels/shared/dropout.h"

namespace mgc::cpu {

// out[i] = std * RandomNormal(seed, stream, index of element i), within 1e-9 * std before it is
// rounded to a float.
void FillNormal(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double std,
                float* out);

// y = x · rule.scale where the element is kept, else 0 (also where x is not finite). It is its own
// gradient. `y` may be `x`. T is float, Bfloat16 or Float16.
template <class T>
void Dropout(Parallel& parallel, const DropoutRule& rule, const IndexGrid& grid, const T* x, T* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_RANDOM_RANDOM_H_
