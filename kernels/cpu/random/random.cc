#include "kernels/cpu/random/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/random/random.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements worth a hand-over

// Calls run(element, index, n) for runs of consecutive indices that cover elements [begin, end).
void ForRuns(const IndexGrid& grid, int64_t begin, int64_t end,
             absl::FunctionRef<void(int64_t, uint64_t, int64_t)> run) {
  const int64_t inner = grid.run();
  for (int64_t at = begin; at < end;) {
    const int64_t n = std::min(inner - at % inner, end - at);
    run(at, IndexOf(grid, at), n);
    at += n;
  }
}

}  // namespace

void FillNormal(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double std,
                float* out) {
  const IndexGrid merged = grid.Merged();
  parallel.For(grid.elements(), kGrain, [&](int64_t begin, int64_t end) {
    ForRuns(merged, begin, end, [&](int64_t at, uint64_t index, int64_t count) {
      MGC_SIMD_CALL(parallel, NormalRun, stream.seed, stream.stream, index, count, std, out + at);
    });
  });
}

template <class T>
void Dropout(Parallel& parallel, const DropoutRule& rule, const IndexGrid& grid, const T* x, T* y) {
  const IndexGrid merged = grid.Merged();
  parallel.For(grid.elements(), kGrain, [&](int64_t begin, int64_t end) {
    ForRuns(merged, begin, end, [&](int64_t at, uint64_t index, int64_t n) {
      MGC_SIMD_CALL(parallel, DropoutRun, rule, index, n, x + at, y + at);
    });
  });
}

template void Dropout(Parallel&, const DropoutRule&, const IndexGrid&, const float*, float*);
template void Dropout(Parallel&, const DropoutRule&, const IndexGrid&, const Bfloat16*, Bfloat16*);
template void Dropout(Parallel&, const DropoutRule&, const IndexGrid&, const Float16*, Float16*);

}  // namespace mgc::cpu
