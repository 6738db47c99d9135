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

void Gelu(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kMathGrain,
               [&](int64_t begin, int64_t end) { MGC_SIMD_CALL(GeluRange, begin, end, x, y); });
}

void GeluGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(GeluGradRange, begin, end, dy, x, dx);
  });
}

void BiasGelu(Parallel& parallel, int64_t rows, int64_t cols, const float* x, const float* bias,
              float* y) {
  parallel.For(rows, RowGrain(kMathGrain, cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(BiasGeluRows, begin, end, cols, x, bias, y);
  });
}

void BiasGeluGrad(Parallel& parallel, int64_t rows, int64_t cols, const float* dy, const float* x,
                  const float* bias, float* dx) {
  parallel.For(rows, RowGrain(kMathGrain, cols), [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(BiasGeluGradRows, begin, end, cols, dy, x, bias, dx);
  });
}

void GeluErf(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kMathGrain,
               [&](int64_t begin, int64_t end) { MGC_SIMD_CALL(GeluErfRange, begin, end, x, y); });
}

void GeluErfGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(GeluErfGradRange, begin, end, dy, x, dx);
  });
}

void Geglu(Parallel& parallel, int64_t n, const float* gate, const float* up, float* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(GegluRange, begin, end, gate, up, y);
  });
}

void GegluGrad(Parallel& parallel, int64_t n, const float* dy, const float* gate, const float* up,
               float* dgate, float* dup) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(GegluGradRange, begin, end, dy, gate, up, dgate, dup);
  });
}

void Softplus(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kMathGrain,
               [&](int64_t begin, int64_t end) { MGC_SIMD_CALL(SoftplusRange, begin, end, x, y); });
}

void SoftplusGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SoftplusGradRange, begin, end, dy, x, dx);
  });
}

void SoftCap(Parallel& parallel, int64_t n, float cap, const float* x, float* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SoftCapRange, begin, end, cap, x, y);
  });
}

void SoftCapGrad(Parallel& parallel, int64_t n, float cap, const float* dy, const float* x,
                 float* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SoftCapGradRange, begin, end, cap, dy, x, dx);
  });
}

void Silu(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kMathGrain,
               [&](int64_t begin, int64_t end) { MGC_SIMD_CALL(SiluRange, begin, end, x, y); });
}

void SiluGrad(Parallel& parallel, int64_t n, const float* dy, const float* x, float* dx) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SiluGradRange, begin, end, dy, x, dx);
  });
}

void Swiglu(Parallel& parallel, int64_t n, const float* gate, const float* up, float* y) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SwigluRange, begin, end, gate, up, y);
  });
}

void SwigluGrad(Parallel& parallel, int64_t n, const float* dy, const float* gate, const float* up,
                float* dgate, float* dup) {
  parallel.For(n, kMathGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(SwigluGradRange, begin, end, dy, gate, up, dgate, dup);
  });
}

}  // namespace mgc::cpu
