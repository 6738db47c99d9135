// Rotary embedding.
#include <cstdint>
#include <vector>

#include "graph/ops/rope_frequencies.h"
#include "kernels/cuda/adapt.h"
#include "kernels/cuda/rope/rope.h"

namespace mgc::cuda {
namespace {

KernelOr MakeRope(const KernelSpec& spec) {
  const std::vector<int64_t>& dims = spec.input_shapes[0];
  RopeShape shape;
  shape.tokens = dims[0] * dims[1];
  shape.heads = dims[2];
  shape.d = dims[3];
  shape.rotated = RotatedDims(spec.attrs, shape.d);
  shape.positions_size = dims[1];
  shape.inverse = spec.attrs.Int("inverse") != 0;
  const std::vector<double> frequencies = RopeFrequencies(spec.attrs, shape.d);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return Rope(stream, shape, In<T>(run, 0), In<int64_t>(run, 1), frequencies.data(),
                  Out<T>(run, 0));
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

}  // namespace mgc::cuda
