#include "kernels/cpu/random/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "graph/base/random.h"
#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/random/random.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements worth a hand-over

// The same indices with as few dims as possible.
IndexGrid Merged(const IndexGrid& grid) {
  IndexGrid merged;
  merged.base = grid.base;
  for (int d = 0; d < grid.rank; ++d) {
    if (grid.size[d] == 1) continue;
    const int last = merged.rank - 1;
    if (last >= 0 && merged.stride[last] == grid.size[d] * grid.stride[d]) {
      merged.size[last] *= grid.size[d];
      merged.stride[last] = grid.stride[d];
    } else {
      merged.size[merged.rank] = grid.size[d];
      merged.stride[merged.rank++] = grid.stride[d];
    }
  }
  return merged;
}

// Calls run(element, index, n) for runs of consecutive indices that cover elements [begin, end).
void ForRuns(const IndexGrid& grid, int64_t begin, int64_t end,
             absl::FunctionRef<void(int64_t, uint64_t, int64_t)> run) {
  const int last = grid.rank - 1;
  const int64_t inner = last >= 0 && grid.stride[last] == 1 ? grid.size[last] : 1;
  for (int64_t at = begin; at < end;) {
    uint64_t index = grid.base;
    for (int64_t rest = at, d = last; d >= 0; --d) {
      index += static_cast<uint64_t>(rest % grid.size[d] * grid.stride[d]);
      rest /= grid.size[d];
    }
    const int64_t n = std::min(inner - at % inner, end - at);
    run(at, index, n);
    at += n;
  }
}

}  // namespace

IndexGrid IndexGrid::Run(uint64_t base, int64_t n) {
  IndexGrid grid;
  grid.base = base;
  grid.rank = 1;
  grid.size[0] = n;
  grid.stride[0] = 1;
  return grid;
}

int64_t IndexGrid::elements() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= size[d];
  return n;
}

DropoutRule MakeDropoutRule(double p, const RandomStream& stream) {
  return {stream, static_cast<uint32_t>(std::min<uint64_t>(DropThreshold(p), 0xffffffffu)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f};
}

void FillNormal(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double std,
                float* out) {
  const IndexGrid merged = Merged(grid);
  parallel.For(grid.elements(), kGrain, [&](int64_t begin, int64_t end) {
    ForRuns(merged, begin, end, [&](int64_t at, uint64_t index, int64_t count) {
      MGC_SIMD_CALL(parallel, NormalRun, stream.seed, stream.stream, index, count, std, out + at);
    });
  });
}

template <class T>
void Dropout(Parallel& parallel, const RandomStream& stream, const IndexGrid& grid, double p,
             const T* x, T* y) {
  const IndexGrid merged = Merged(grid);
  const DropoutRule rule = MakeDropoutRule(p, stream);
  parallel.For(grid.elements(), kGrain, [&](int64_t begin, int64_t end) {
    ForRuns(merged, begin, end, [&](int64_t at, uint64_t index, int64_t n) {
      MGC_SIMD_CALL(parallel, DropoutRun, rule, index, n, x + at, y + at);
    });
  });
}

template void Dropout(Parallel&, const RandomStream&, const IndexGrid&, double, const float*,
                      float*);
template void Dropout(Parallel&, const RandomStream&, const IndexGrid&, double, const Bfloat16*,
                      Bfloat16*);
template void Dropout(Parallel&, const RandomStream&, const IndexGrid&, double, const Float16*,
                      Float16*);

}  // namespace mgc::cpu
