// Rotary embedding.
#include <cstdint>
#include <vector>

#include "graph/ops/rope_frequencies.h"
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/rope/rope.h"

namespace mgc::cpu {
namespace {

KernelOr MakeRope(const KernelSpec& spec) {
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const int64_t tokens = shape[0] * shape[1], heads = shape[2], d = shape[3];
  const bool inverse = spec.attrs.Int("inverse") != 0;
  const std::vector<double> frequencies = RopeFrequencies(spec.attrs, d);
  const int64_t rotated = RotatedDims(spec.attrs, d);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=, seq = shape[1]](const KernelRun& run, Parallel& parallel) {
      Rope(parallel, tokens, heads, d, rotated, In<T>(run, 0), In<int64_t>(run, 1), seq,
           frequencies.data(), inverse, Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> RopeKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"rope", MakeRope},
  };
  return kEntries;
}

}  // namespace mgc::cpu
