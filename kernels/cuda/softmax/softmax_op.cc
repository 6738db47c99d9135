// Softmax over the last dim.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/device/row_shape.h"
#include "kernels/cuda/softmax/softmax.h"

namespace mgc::cuda {
namespace {

KernelOr MakeSoftmax(const KernelSpec& spec) {
  const int64_t rows = LeadingDims(spec.input_shapes[0]);
  const int64_t cols = LastDim(spec.input_shapes[0]);
  if (cols > kMostRowElements) return NoKernel(spec);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [rows, cols](const KernelRun& run, Stream stream) {
      return Softmax(stream, rows, cols, In<T>(run, 0), Out<T>(run, 0));
    });
  });
}

KernelOr MakeSoftmaxGrad(const KernelSpec& spec) {
  const int64_t rows = LeadingDims(spec.input_shapes[0]);
  const int64_t cols = LastDim(spec.input_shapes[0]);
  if (cols > kMostRowElements) return NoKernel(spec);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [rows, cols](const KernelRun& run, Stream stream) {
      return SoftmaxGrad(stream, rows, cols, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> SoftmaxKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"softmax", MakeSoftmax},
      {"softmax_grad", MakeSoftmaxGrad},
  };
  return kEntries;
}

}  // namespace mgc::cuda
