// Softmax from the pieces of the cross-entropy.
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/reduce/reduce.h"

namespace mgc::cpu {
namespace {

// y = exp(x - m) * (1 / z): the row's maximum and sum live in the workspace.
KernelOr MakeSoftmax(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t cols = LastDim(spec.input_shapes[0]);
  const LogitsShape shape{LeadingDims(spec.input_shapes[0]), cols, cols, 0};
  return MakeKernel(
      spec,
      [shape](const KernelRun& run, Parallel& parallel) {
        float* m = Scratch(run);
        float* z = m + shape.rows;
        RowMax(parallel, shape.rows, shape.cols, shape.valid, X(run, 0), m);
        ExpSum(parallel, shape, X(run, 0), m, z);
        for (int64_t r = 0; r < shape.rows; ++r) z[r] = 1 / z[r];
        ExpSumGrad(parallel, shape, X(run, 0), m, z, Y(run, 0));
      },
      [shape](int) { return 2 * shape.rows * static_cast<int64_t>(sizeof(float)); });
}

KernelOr MakeSoftmaxGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t rows = LeadingDims(spec.input_shapes[0]);
  const int64_t cols = LastDim(spec.input_shapes[0]);
  return MakeKernel(spec, [rows, cols](const KernelRun& run, Parallel& parallel) {
    parallel.For(rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* dy = X(run, 0) + r * cols;
        const float* y = X(run, 1) + r * cols;
        double dot = 0;
        for (int64_t i = 0; i < cols; ++i) dot += static_cast<double>(dy[i]) * y[i];
        const float sum = static_cast<float>(dot);
        for (int64_t i = 0; i < cols; ++i) Y(run, 0)[r * cols + i] = y[i] * (dy[i] - sum);
      }
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

}  // namespace mgc::cpu
