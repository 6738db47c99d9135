// Single elements of float, Bfloat16 and Float16, for code that is written for all.
#ifndef MGC_KERNELS_CPU_SIMD_ELEMENTS_H_
#define MGC_KERNELS_CPU_SIMD_ELEMENTS_H_

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc::cpu {

inline float FloatOf(float x) { return x; }
inline float FloatOf(Bfloat16 x) { return ToFloat(x); }
inline float FloatOf(Float16 x) { return ToFloat(x); }

// *y = x, rounded.
inline void Put(float x, float* y) { *y = x; }
inline void Put(float x, Bfloat16* y) { *y = ToBfloat16(x); }
inline void Put(float x, Float16* y) { *y = ToFloat16(x); }

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_SIMD_ELEMENTS_H_
