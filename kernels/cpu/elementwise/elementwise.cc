#include "kernels/cpu/elementwise/elementwise.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/elementwise/elementwise.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements worth a hand-over

// Calls part(begin, end, offset) for pieces of [begin, end) inside which an operand of `size`
// elements does not start again; `offset` is what to subtract from an index to get the operand's.
template <class Part>
void ForPeriods(int64_t begin, int64_t end, int64_t size, const Part& part) {
  for (int64_t at = begin; at < end;) {
    const int64_t start = at / size * size;
    const int64_t stop = std::min(start + size, end);
    part(at, stop, start);
    at = stop;
  }
}

}  // namespace

template <class T>
void Add(Parallel& parallel, int64_t n, absl::Span<const Addend<T>> x, T* y) {
  constexpr int64_t kBlock = 4096;  // stays in the nearest cache over all operands
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += kBlock) {
      const int64_t to = std::min(from + kBlock, end);
      if (x.size() == 1) MGC_SIMD_CALL(parallel, CastRange, from, to, x[0].data, y);
      // A later operand may be y itself: sums stay in a block of their own until all are read.
      float sum[kBlock];
      for (size_t k = 1; k < x.size(); ++k) {
        ForPeriods(from, to, x[k].size, [&](int64_t first, int64_t last, int64_t start) {
          const int64_t count = last - first;
          const T* one = x[0].data + first;
          const T* operand = x[k].data + (first - start);
          float* at = sum + (first - from);
          const bool ends = k + 1 == x.size();
          if (k == 1 && ends) {
            MGC_SIMD_CALL(parallel, AddRange, 0, count, one, operand, y + first);
          } else if (k == 1) {
            MGC_SIMD_CALL(parallel, AddRange, 0, count, one, operand, at);
          } else if (ends) {
            MGC_SIMD_CALL(parallel, AddRange, 0, count, at, operand, y + first);
          } else {
            MGC_SIMD_CALL(parallel, AddRange, 0, count, at, operand, at);
          }
        });
      }
    }
  });
}

template <class T>
void Subtract(Parallel& parallel, int64_t n, const T* a, const T* b, T* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SubtractRange, begin, end, a, b, y);
  });
}

template <class T>
void Multiply(Parallel& parallel, int64_t n, const T* a, int64_t b_size, const T* b, T* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    if (b_size == 1) {
      MGC_SIMD_CALL(parallel, ScaleRange, begin, end, FloatOf(*b), a, y);
      return;
    }
    ForPeriods(begin, end, b_size, [&](int64_t first, int64_t last, int64_t start) {
      MGC_SIMD_CALL(parallel, MultiplyRange, 0, last - first, a + first, b + (first - start),
                    y + first);
    });
  });
}

template <class T>
void Scale(Parallel& parallel, int64_t n, float factor, const T* x, T* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, ScaleRange, begin, end, factor, x, y);
  });
}

template <class From, class To>
void Cast(Parallel& parallel, int64_t n, const From* x, To* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, CastRange, begin, end, x, y);
  });
}

void Invert(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, InvertRange, begin, end, x, y);
  });
}

void SquareRoot(Parallel& parallel, int64_t n, const float* x, float* y) {
  parallel.For(n, kGrain, [&](int64_t begin, int64_t end) {
    MGC_SIMD_CALL(parallel, SquareRootRange, begin, end, x, y);
  });
}

template void Add(Parallel&, int64_t, absl::Span<const Addend<float>>, float*);
template void Add(Parallel&, int64_t, absl::Span<const Addend<Bfloat16>>, Bfloat16*);
template void Add(Parallel&, int64_t, absl::Span<const Addend<Float16>>, Float16*);
template void Subtract(Parallel&, int64_t, const float*, const float*, float*);
template void Subtract(Parallel&, int64_t, const Bfloat16*, const Bfloat16*, Bfloat16*);
template void Subtract(Parallel&, int64_t, const Float16*, const Float16*, Float16*);
template void Multiply(Parallel&, int64_t, const float*, int64_t, const float*, float*);
template void Multiply(Parallel&, int64_t, const Bfloat16*, int64_t, const Bfloat16*, Bfloat16*);
template void Multiply(Parallel&, int64_t, const Float16*, int64_t, const Float16*, Float16*);
template void Scale(Parallel&, int64_t, float, const float*, float*);
template void Scale(Parallel&, int64_t, float, const Bfloat16*, Bfloat16*);
template void Scale(Parallel&, int64_t, float, const Float16*, Float16*);
template void Cast(Parallel&, int64_t, const float*, Bfloat16*);
template void Cast(Parallel&, int64_t, const float*, Float16*);
template void Cast(Parallel&, int64_t, const Bfloat16*, float*);
template void Cast(Parallel&, int64_t, const Float16*, float*);

}  // namespace mgc::cpu
