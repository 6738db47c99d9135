// Softmax from the pieces of the cross-entropy.
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/simd/elements.h"

namespace mgc::cpu {
namespace {

// y = exp(x - m) * (1 / z): the row's maximum and sum live in the workspace.
KernelOr MakeSoftmax(const KernelSpec& spec) {
  const int64_t cols = LastDim(spec.input_shapes[0]);
  const LogitsShape shape{LeadingDims(spec.input_shapes[0]), cols, cols, 0};
  const auto workspace = [shape](int) {
    return 2 * shape.rows * static_cast<int64_t>(sizeof(float));
  };
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto run_rows = [shape](const KernelRun& run, Parallel& parallel) {
      float* m = Scratch(run);
      float* z = m + shape.rows;
      RowMax(parallel, shape.rows, shape.cols, shape.valid, In<T>(run, 0), m);
      ExpSum(parallel, shape, In<T>(run, 0), m, z);
      for (int64_t r = 0; r < shape.rows; ++r) z[r] = 1 / z[r];
      ExpSumGrad(parallel, shape, In<T>(run, 0), m, z, Out<T>(run, 0));
    };
    return MakeKernel(spec, run_rows, workspace);
  });
}

KernelOr MakeSoftmaxGrad(const KernelSpec& spec) {
  const int64_t rows = LeadingDims(spec.input_shapes[0]);
  const int64_t cols = LastDim(spec.input_shapes[0]);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [rows, cols](const KernelRun& run, Parallel& parallel) {
      parallel.For(rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* dy = In<T>(run, 0) + r * cols;
          const T* y = In<T>(run, 1) + r * cols;
          double dot = 0;
          for (int64_t i = 0; i < cols; ++i) {
            dot += static_cast<double>(FloatOf(dy[i])) * FloatOf(y[i]);
          }
          const float sum = static_cast<float>(dot);
          T* dx = Out<T>(run, 0) + r * cols;
          for (int64_t i = 0; i < cols; ++i) Put(FloatOf(y[i]) * (FloatOf(dy[i]) - sum), dx + i);
        }
      });
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
