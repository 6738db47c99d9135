// Norms.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/norm/norm.h"

namespace mgc::cuda {
namespace {

// Rows and columns of an operand.
NormShape ShapeOf(const KernelSpec& spec, size_t operand) {
  return {LeadingDims(spec.input_shapes[operand]), LastDim(spec.input_shapes[operand])};
}

KernelOr MakeLayerNorm(const KernelSpec& spec) {
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  const NormShape x = ShapeOf(spec, 0);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return LayerNorm(stream, x, eps, In<T>(run, 0), In<float>(run, 1), In<float>(run, 2),
                       Out<T>(run, 0), Out<float>(run, 1), Out<float>(run, 2));
    });
  });
}

KernelOr MakeLayerNormGrad(const KernelSpec& spec) {
  const NormShape x = ShapeOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return LayerNormGrad(stream, x, In<T>(run, 0), In<T>(run, 1), In<float>(run, 2),
                           In<float>(run, 3), In<float>(run, 4), Out<T>(run, 0));
    });
  });
}

KernelOr MakeLayerNormParamGrad(const KernelSpec& spec) {
  const NormShape x = ShapeOf(spec, 1);
  const int64_t bytes = WorkspaceBoundOf(spec, KernelHost::kGpu);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [=](const KernelRun& run, Stream stream) {
      const PartsRoom room = PartsRoom::In(run.workspace, bytes, 2 * x.cols);
      return LayerNormParamGrad(stream, x, room, In<T>(run, 0), In<T>(run, 1), In<float>(run, 2),
                                In<float>(run, 3), Out<float>(run, 0), Out<float>(run, 1));
    };
    return MakeKernel(spec, issue, bytes);
  });
}

KernelOr MakeRmsNorm(const KernelSpec& spec) {
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  const NormShape x = ShapeOf(spec, 0);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return RmsNorm(stream, x, eps, In<T>(run, 0), In<float>(run, 1), Out<T>(run, 0),
                     Out<float>(run, 1));
    });
  });
}

KernelOr MakeRmsNormGrad(const KernelSpec& spec) {
  const NormShape x = ShapeOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Stream stream) {
      return RmsNormGrad(stream, x, In<T>(run, 0), In<T>(run, 1), In<float>(run, 2),
                         In<float>(run, 3), Out<T>(run, 0));
    });
  });
}

KernelOr MakeRmsNormParamGrad(const KernelSpec& spec) {
  const NormShape x = ShapeOf(spec, 1);
  const int64_t bytes = WorkspaceBoundOf(spec, KernelHost::kGpu);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [=](const KernelRun& run, Stream stream) {
      const PartsRoom room = PartsRoom::In(run.workspace, bytes, x.cols);
      return RmsNormParamGrad(stream, x, room, In<T>(run, 0), In<T>(run, 1), In<float>(run, 2),
                              Out<float>(run, 0));
    };
    return MakeKernel(spec, issue, bytes);
  });
}

}  // namespace

absl::Span<const KernelEntry> NormKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"layer_norm", MakeLayerNorm},
      {"layer_norm_grad", MakeLayerNormGrad},
      {"layer_norm_param_grad", MakeLayerNormParamGrad},
      {"rms_norm", MakeRmsNorm},
      {"rms_norm_grad", MakeRmsNormGrad},
      {"rms_norm_param_grad", MakeRmsNormParamGrad},
  };
  return kEntries;
}

}  // namespace mgc::cuda
