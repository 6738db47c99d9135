#include "kernels/cpu/activation/activation.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/activation/activation.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kMathGrain = 4096;  // elements with an exponential, worth a hand-over

int64_t RowGrain(int64_t grain, int64_t cols) {
  return std::max<int64_t>(grain / std::max<int64_t>(cols, 1), 1);
}

}  // namespace

template <class T>
void Gelu(Parallel& parallel, int64_t n, const T* x, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GeluRange, begin, end, x, y);
  });
}

template <class T>
void GeluGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GeluGradRange, begin, end, dy, x, dx);
  });
}

template <class T>
void BiasGelu(Parallel& parallel, int64_t rows, int64_t cols, const T* x, const T* bias, T* y) {
  parallel.For(rows, RowGrain(kMathGrain, cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, BiasGeluRows, begin, end, cols, x, bias, y);
  });
}

template <class T>
void BiasGeluGrad(Parallel& parallel, int64_t rows, int64_t cols, const T* dy, const T* x,
                  const T* bias, T* dx) {
  parallel.For(rows, RowGrain(kMathGrain, cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, BiasGeluGradRows, begin, end, cols, dy, x, bias, dx);
  });
}

template <class T>
void GeluErf(Parallel& parallel, int64_t n, const T* x, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GeluErfRange, begin, end, x, y);
  });
}

template <class T>
void GeluErfGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GeluErfGradRange, begin, end, dy, x, dx);
  });
}

template <class T>
void Geglu(Parallel& parallel, int64_t n, const T* gate, const T* up, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GegluRange, begin, end, gate, up, y);
  });
}

template <class T>
void GegluGrad(Parallel& parallel, int64_t n, const T* dy, const T* gate, const T* up, T* dgate,
               T* dup) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, GegluGradRange, begin, end, dy, gate, up, dgate, dup);
  });
}

template <class T>
void Softplus(Parallel& parallel, int64_t n, const T* x, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SoftplusRange, begin, end, x, y);
  });
}

template <class T>
void SoftplusGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SoftplusGradRange, begin, end, dy, x, dx);
  });
}

template <class T>
void SoftCap(Parallel& parallel, int64_t n, float cap, const T* x, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SoftCapRange, begin, end, cap, x, y);
  });
}

template <class T>
void SoftCapGrad(Parallel& parallel, int64_t n, float cap, const T* dy, const T* x, T* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SoftCapGradRange, begin, end, cap, dy, x, dx);
  });
}

template <class T>
void Silu(Parallel& parallel, int64_t n, const T* x, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SiluRange, begin, end, x, y);
  });
}

template <class T>
void SiluGrad(Parallel& parallel, int64_t n, const T* dy, const T* x, T* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SiluGradRange, begin, end, dy, x, dx);
  });
}

template <class T>
void Swiglu(Parallel& parallel, int64_t n, const T* gate, const T* up, T* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SwigluRange, begin, end, gate, up, y);
  });
}

template <class T>
void SwigluGrad(Parallel& parallel, int64_t n, const T* dy, const T* gate, const T* up, T* dgate,
                T* dup) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SwigluGradRange, begin, end, dy, gate, up, dgate, dup);
  });
}

template void Gelu(Parallel&, int64_t, const float*, float*);
template void Gelu(Parallel&, int64_t, const Bfloat16*, Bfloat16*);
template void Gelu(Parallel&, int64_t, const Float16*, Float16*);
template void GeluGrad(Parallel&, int64_t, const float*, const float*, float*);
template void GeluGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void GeluGrad(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void BiasGelu(Parallel&, int64_t, int64_t, const float*, const float*, float*);
template void BiasGelu(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void BiasGelu(Parallel&, int64_t, int64_t, const Float16*, const Float16*, Float16*);
template void BiasGeluGrad(Parallel&, int64_t, int64_t, const float*, const float*, const float*,
                           float*);
template void BiasGeluGrad(Parallel&, int64_t, int64_t, const Bfloat16*, const Bfloat16*,
                           const Bfloat16*, Bfloat16*);
template void BiasGeluGrad(Parallel&, int64_t, int64_t, const Float16*, const Float16*,
                           const Float16*, Float16*);
template void GeluErf(Parallel&, int64_t, const float*, float*);
template void GeluErf(Parallel&, int64_t, const Bfloat16*, Bfloat16*);
template void GeluErf(Parallel&, int64_t, const Float16*, Float16*);
template void GeluErfGrad(Parallel&, int64_t, const float*, const float*, float*);
template void GeluErfGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void GeluErfGrad(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void Geglu(Parallel&, int64_t, const float*, const float*, float*);
template void Geglu(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void Geglu(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void GegluGrad(Parallel&, int64_t, const float*, const float*, const float*, float*,
                        float*);
template void GegluGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, const Bfloat16*,
                        Bfloat16*, Bfloat16*);
template void GegluGrad(Parallel&, int64_t, const Float16*, const Float16*, const Float16*,
                        Float16*, Float16*);
template void Softplus(Parallel&, int64_t, const float*, float*);
template void Softplus(Parallel&, int64_t, const Bfloat16*, Bfloat16*);
template void Softplus(Parallel&, int64_t, const Float16*, Float16*);
template void SoftplusGrad(Parallel&, int64_t, const float*, const float*, float*);
template void SoftplusGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void SoftplusGrad(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void SoftCap(Parallel&, int64_t, float, const float*, float*);
template void SoftCap(Parallel&, int64_t, float, const Bfloat16*, Bfloat16*);
template void SoftCap(Parallel&, int64_t, float, const Float16*, Float16*);
template void SoftCapGrad(Parallel&, int64_t, float, const float*, const float*, float*);
template void SoftCapGrad(Parallel&, int64_t, float, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void SoftCapGrad(Parallel&, int64_t, float, const Float16*, const Float16*, Float16*);
template void Silu(Parallel&, int64_t, const float*, float*);
template void Silu(Parallel&, int64_t, const Bfloat16*, Bfloat16*);
template void Silu(Parallel&, int64_t, const Float16*, Float16*);
template void SiluGrad(Parallel&, int64_t, const float*, const float*, float*);
template void SiluGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void SiluGrad(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void Swiglu(Parallel&, int64_t, const float*, const float*, float*);
template void Swiglu(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void Swiglu(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void SwigluGrad(Parallel&, int64_t, const float*, const float*, const float*, float*,
                         float*);
template void SwigluGrad(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, const Bfloat16*,
                         Bfloat16*, Bfloat16*);
template void SwigluGrad(Parallel&, int64_t, const Float16*, const Float16*, const Float16*,
                         Float16*, Float16*);

}  // namespace mgc::cpu
