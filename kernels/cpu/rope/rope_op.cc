// Rotary embedding.
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/ops/rope_frequencies.h"
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/rope/rope.h"

namespace mgc::cpu {
namespace {

KernelOr MakeRope(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const int64_t tokens = shape[0] * shape[1], heads = shape[2], d = shape[3];
  const bool inverse = spec.attrs.Int("inverse") != 0;
  std::vector<double> frequencies = RopeFrequencies(spec.attrs, d);
  const int64_t rotated = RotatedDims(spec.attrs, d);
  return MakeKernel(spec, [=, seq = shape[1], frequencies = std::move(frequencies)](
                              const KernelRun& run, Parallel& parallel) {
    Rope(parallel, tokens, heads, d, rotated, X(run, 0), In<int64_t>(run, 1), seq,
         frequencies.data(), inverse, Y(run, 0));
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
