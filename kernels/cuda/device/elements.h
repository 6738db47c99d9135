// Elements of tensors in device code: stored narrow, computed with in f32; those of f64 in f64.

#ifndef MGC_KERNELS_CUDA_DEVICE_ELEMENTS_H_
#define MGC_KERNELS_CUDA_DEVICE_ELEMENTS_H_

#include <type_traits>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/cuda/device/device.h"

#ifndef MGC_CUDA_EMULATED
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace mgc::cuda {

// What is computed with elements of T in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// As a Wide number; exact.
__device__ inline float Load(float x) { return x; }
__device__ inline double Load(double x) { return x; }
__device__ inline float Load(int8_t x) { return x; }
#ifdef MGC_CUDA_EMULATED
inline float Load(Bfloat16 x) { return ToFloat(x); }
inline float Load(Float16 x) { return ToFloat(x); }
#else
__device__ inline float Load(Bfloat16 x) { return __uint_as_float(unsigned{x.bits} << 16); }
__device__ inline float Load(Float16 x) { return __half2float(__ushort_as_half(x.bits)); }
#endif

// Rounded to the nearest T, ties to even.
template <class T>
__device__ T Store(Wide<T> x);
template <>
__device__ inline float Store<float>(float x) {
  return x;
}
template <>
__device__ inline double Store<double>(double x) {
  return x;
}
template <>
__device__ inline Bfloat16 Store<Bfloat16>(float x) {
#ifdef MGC_CUDA_EMULATED
  return ToBfloat16(x);
#else
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#endif
}
template <>
__device__ inline Float16 Store<Float16>(float x) {
#ifdef MGC_CUDA_EMULATED
  return ToFloat16(x);
#else
  return {__half_as_ushort(__float2half_rn(x))};
#endif
}

// Several elements that are read and written as one access.
template <class T, int n>
struct alignas(sizeof(T) * n) Vector {
  T at[n];
};

// Writes 16 bytes as one access: a compiler that also sees them written one by one elsewhere (rows
// that are not aligned) would else make both the latter.
template <class T, int n>
__device__ inline void StoreWhole(const Vector<T, n>& elements, T* to) {
  static_assert(sizeof(elements) == 16);
  struct alignas(16) Words {
    unsigned word[4];
  };
  Words words;
  memcpy(&words, &elements, sizeof words);
#ifdef MGC_CUDA_EMULATED
  memcpy(to, &words, sizeof words);
#else
  asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(words.word[0]), "r"(words.word[1]), "r"(words.word[2]),
                 "r"(words.word[3])
               : "memory");
#endif
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_ELEMENTS_H_
