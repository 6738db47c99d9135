// Positions, masks and distances.
#include <cstdint>
#include <limits>

#include "graph/ops/relative_bucket.h"
#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kRowGrain = 16;  // rows of pairs, worth a hand-over

KernelOr MakeIota(const KernelSpec& spec) {
  const int64_t begin = PieceNamed(spec, "n").begin;
  const bool samples = BatchFactor(spec) >= 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel&) {
    const int64_t first = begin + (samples ? run.first_sample : 0);
    for (int64_t i = 0; i < n; ++i) Out<int64_t>(run, 0)[i] = first + i;
  });
}

// Every pair of positions: out[q, k] = pair(query position, key position).
template <class T, class F>
KernelOr MakeOfPairs(const KernelSpec& spec, F pair) {
  const int64_t queries = InSize(spec, 0), keys = InSize(spec, 1);
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    const int64_t* query = In<int64_t>(run, 0);
    const int64_t* key = In<int64_t>(run, 1);
    T* out = Out<T>(run, 0);
    parallel.For(queries, kRowGrain, [&](int64_t begin, int64_t end) {
      for (int64_t q = begin; q < end; ++q) {
        for (int64_t k = 0; k < keys; ++k) out[q * keys + k] = pair(query[q], key[k]);
      }
    });
  });
}

KernelOr MakeCausalMask(const KernelSpec& spec) {
  return MakeOfPairs<float>(spec, [](int64_t query, int64_t key) {
    return key <= query ? 0.0f : -std::numeric_limits<float>::infinity();
  });
}

KernelOr MakePaddingMask(const KernelSpec& spec) {
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel&) {
    const int64_t* mask = In<int64_t>(run, 0);
    for (int64_t i = 0; i < n; ++i) {
      Out<float>(run, 0)[i] = mask[i] != 0 ? 0.0f : -std::numeric_limits<float>::infinity();
    }
  });
}

KernelOr MakeRelativeBucket(const KernelSpec& spec) {
  const RelativeBuckets rule = {spec.attrs.Int("buckets"), spec.attrs.Int("farthest"),
                                spec.attrs.Int("causal") != 0};
  return MakeOfPairs<int64_t>(
      spec, [rule](int64_t query, int64_t key) { return RelativeBucketOf(rule, query, key); });
}

}  // namespace

absl::Span<const KernelEntry> PositionKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"causal_mask", MakeCausalMask},
      {"iota", MakeIota},
      {"padding_mask", MakePaddingMask},
      {"relative_bucket", MakeRelativeBucket},
  };
  return kEntries;
}

}  // namespace mgc::cpu
