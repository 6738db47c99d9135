#include "kernels/cpu/loss/loss.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/loss/loss.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

int64_t RowGrain(const LogitsShape& shape) {
  return std::max<int64_t>(8192 / std::max<int64_t>(shape.cols, 1), 1);
}

// The column of an id, -1 where it is not among the valid ones.
int64_t ColumnOf(const LogitsShape& shape, int64_t id) {
  const bool here = id >= shape.offset && id - shape.offset < shape.valid;
  return here ? id - shape.offset : -1;
}

}  // namespace

template <class T>
void ExpSum(Parallel& parallel, const LogitsShape& shape, const T* logits, const float* m,
            float* z) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      z[r] = MGC_SIMD_CALL(parallel, ExpSumRow, shape.valid, logits + r * shape.cols, m[r]);
    }
  });
}

template <class T>
void ExpSumGrad(Parallel& parallel, const LogitsShape& shape, const T* logits, const float* m,
                const float* dz, T* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = dlogits + r * shape.cols;
      MGC_SIMD_CALL(parallel, ExpRow, shape.valid, logits + r * shape.cols, m[r], dz[r], row);
      std::fill(row + shape.valid, row + shape.cols, T{});
    }
  });
}

void LogShift(Parallel& parallel, int64_t n, const float* z, const float* m, float* lse) {
  parallel.For(n, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) lse[i] = m[i] + std::log(z[i]);
  });
}

void Counted(Parallel& parallel, int64_t n, int64_t ignore, const int64_t* ids, float* weights) {
  parallel.For(n, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) weights[i] = ids[i] == ignore ? 0.0f : 1.0f;
  });
}

template <class T>
void Pick(Parallel& parallel, const LogitsShape& shape, const T* logits, const int64_t* ids,
          float* picked) {
  parallel.For(shape.rows, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t col = ColumnOf(shape, ids[r]);
      picked[r] = col < 0 ? 0.0f : FloatOf(logits[r * shape.cols + col]);
    }
  });
}

template <class T>
void PickGrad(Parallel& parallel, const LogitsShape& shape, const int64_t* ids, const float* dp,
              T* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = dlogits + r * shape.cols;
      std::fill(row, row + shape.cols, T{});
      const int64_t col = ColumnOf(shape, ids[r]);
      if (col >= 0) Put(dp[r], row + col);
    }
  });
}

template <class T>
void CrossEntropyGrad(Parallel& parallel, const LogitsShape& shape, const T* logits, const float* m,
                      const float* dz, const int64_t* ids, const float* dp, T* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = dlogits + r * shape.cols;
      const T* from = logits + r * shape.cols;
      const int64_t col = ColumnOf(shape, ids[r]);
      T target{};
      if (col >= 0) MGC_SIMD_CALL(parallel, ExpElement, from + col, m[r], dz[r], dp[r], &target);
      MGC_SIMD_CALL(parallel, ExpRow, shape.valid, from, m[r], dz[r], row);
      std::fill(row + shape.valid, row + shape.cols, T{});
      if (col >= 0) row[col] = target;
    }
  });
}

template void ExpSum(Parallel&, const LogitsShape&, const float*, const float*, float*);
template void ExpSum(Parallel&, const LogitsShape&, const Bfloat16*, const float*, float*);
template void ExpSum(Parallel&, const LogitsShape&, const Float16*, const float*, float*);
template void ExpSumGrad(Parallel&, const LogitsShape&, const float*, const float*, const float*,
                         float*);
template void ExpSumGrad(Parallel&, const LogitsShape&, const Bfloat16*, const float*, const float*,
                         Bfloat16*);
template void ExpSumGrad(Parallel&, const LogitsShape&, const Float16*, const float*, const float*,
                         Float16*);
template void Pick(Parallel&, const LogitsShape&, const float*, const int64_t*, float*);
template void Pick(Parallel&, const LogitsShape&, const Bfloat16*, const int64_t*, float*);
template void Pick(Parallel&, const LogitsShape&, const Float16*, const int64_t*, float*);
template void PickGrad(Parallel&, const LogitsShape&, const int64_t*, const float*, float*);
template void PickGrad(Parallel&, const LogitsShape&, const int64_t*, const float*, Bfloat16*);
template void PickGrad(Parallel&, const LogitsShape&, const int64_t*, const float*, Float16*);
template void CrossEntropyGrad(Parallel&, const LogitsShape&, const float*, const float*,
                               const float*, const int64_t*, const float*, float*);
template void CrossEntropyGrad(Parallel&, const LogitsShape&, const Bfloat16*, const float*,
                               const float*, const int64_t*, const float*, Bfloat16*);
template void CrossEntropyGrad(Parallel&, const LogitsShape&, const Float16*, const float*,
                               const float*, const int64_t*, const float*, Float16*);

}  // namespace mgc::cpu
