// Norms.
#include <cstdint>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/norm/norm.h"

namespace mgc::cpu {
namespace {

// Rows and columns of an operand.
struct Matrix {
  int64_t rows, cols;
};

Matrix MatrixOf(const KernelSpec& spec, size_t operand) {
  return {LeadingDims(spec.input_shapes[operand]), LastDim(spec.input_shapes[operand])};
}

KernelOr MakeLayerNorm(const KernelSpec& spec) {
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  const Matrix x = MatrixOf(spec, 0);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      LayerNorm(parallel, x.rows, x.cols, eps, In<T>(run, 0), X(run, 1), X(run, 2), Out<T>(run, 0),
                Y(run, 1), Y(run, 2));
    });
  });
}

KernelOr MakeLayerNormGrad(const KernelSpec& spec) {
  const Matrix x = MatrixOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      LayerNormGrad(parallel, x.rows, x.cols, In<T>(run, 0), In<T>(run, 1), X(run, 2), X(run, 3),
                    X(run, 4), Out<T>(run, 0));
    });
  });
}

KernelOr MakeLayerNormParamGrad(const KernelSpec& spec) {
  const Matrix x = MatrixOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      LayerNormParamGrad(parallel, x.rows, x.cols, In<T>(run, 0), In<T>(run, 1), X(run, 2),
                         X(run, 3), false, Y(run, 0), Y(run, 1));
    });
  });
}

KernelOr MakeRmsNorm(const KernelSpec& spec) {
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  const Matrix x = MatrixOf(spec, 0);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      RmsNorm(parallel, x.rows, x.cols, eps, In<T>(run, 0), X(run, 1), Out<T>(run, 0), Y(run, 1));
    });
  });
}

KernelOr MakeRmsNormGrad(const KernelSpec& spec) {
  const Matrix x = MatrixOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      RmsNormGrad(parallel, x.rows, x.cols, In<T>(run, 0), In<T>(run, 1), X(run, 2), X(run, 3),
                  Out<T>(run, 0));
    });
  });
}

KernelOr MakeRmsNormParamGrad(const KernelSpec& spec) {
  const Matrix x = MatrixOf(spec, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
      RmsNormParamGrad(parallel, x.rows, x.cols, In<T>(run, 0), In<T>(run, 1), X(run, 2), false,
                       Y(run, 0));
    });
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

}  // namespace mgc::cpu
