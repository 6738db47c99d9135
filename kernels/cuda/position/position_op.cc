// Positions, masks and distances.
#include <cstdint>
#include <vector>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/position/bucket_starts.h"
#include "kernels/cuda/position/position.h"

namespace mgc::cuda {
namespace {

KernelOr MakeIota(const KernelSpec& spec) {
  const int64_t begin = PieceNamed(spec, "n").begin;
  const bool samples = BatchFactor(spec) >= 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return Iota(stream, n, begin, samples ? SampleOf(run) : SamplePlace(), Out<int64_t>(run, 0));
  });
}

KernelOr MakeCausalMask(const KernelSpec& spec) {
  const int64_t queries = InSize(spec, 0), keys = InSize(spec, 1);
  return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
    return CausalMask(stream, queries, keys, In<int64_t>(run, 0), In<int64_t>(run, 1),
                      Out<float>(run, 0));
  });
}

KernelOr MakePaddingMask(const KernelSpec& spec) {
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return PaddingMask(stream, n, In<int64_t>(run, 0), Out<float>(run, 0));
  });
}

KernelOr MakeRelativeBucket(const KernelSpec& spec) {
  const RelativeBuckets rule = {spec.attrs.Int("buckets"), spec.attrs.Int("farthest"),
                                spec.attrs.Int("causal") != 0};
  const std::vector<int64_t> starts = BucketStarts(rule);
  const int64_t later = rule.causal ? 0 : rule.buckets / 2;
  const int64_t queries = InSize(spec, 0), keys = InSize(spec, 1);
  return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
    const BucketTable table = {starts.data(), static_cast<int64_t>(starts.size()), later};
    return RelativeBucket(stream, table, queries, keys, In<int64_t>(run, 0), In<int64_t>(run, 1),
                          Out<int64_t>(run, 0));
  });
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

}  // namespace mgc::cuda
