#include "kernels/cpu/loss/loss.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

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

void ExpSum(Parallel& parallel, const LogitsShape& shape, const float* logits, const float* m,
            float* z) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      z[r] = MGC_SIMD_CALL(ExpSumRow, shape.valid, logits + r * shape.cols, m[r]);
    }
  });
}

void ExpSumGrad(Parallel& parallel, const LogitsShape& shape, const float* logits, const float* m,
                const float* dz, float* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = dlogits + r * shape.cols;
      MGC_SIMD_CALL(ExpRow, shape.valid, logits + r * shape.cols, m[r], dz[r], row);
      std::fill(row + shape.valid, row + shape.cols, 0.0f);
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

void Pick(Parallel& parallel, const LogitsShape& shape, const float* logits, const int64_t* ids,
          float* picked) {
  parallel.For(shape.rows, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t col = ColumnOf(shape, ids[r]);
      picked[r] = col < 0 ? 0.0f : logits[r * shape.cols + col];
    }
  });
}

void PickGrad(Parallel& parallel, const LogitsShape& shape, const int64_t* ids, const float* dp,
              float* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = dlogits + r * shape.cols;
      std::fill(row, row + shape.cols, 0.0f);
      const int64_t col = ColumnOf(shape, ids[r]);
      if (col >= 0) row[col] = dp[r];
    }
  });
}

void CrossEntropyGrad(Parallel& parallel, const LogitsShape& shape, const float* logits,
                      const float* m, const float* dz, const int64_t* ids, const float* dp,
                      float* dlogits) {
  parallel.For(shape.rows, RowGrain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = dlogits + r * shape.cols;
      MGC_SIMD_CALL(ExpRow, shape.valid, logits + r * shape.cols, m[r], dz[r], row);
      std::fill(row + shape.valid, row + shape.cols, 0.0f);
      const int64_t col = ColumnOf(shape, ids[r]);
      if (col >= 0) row[col] += dp[r];
    }
  });
}

}  // namespace mgc::cpu
