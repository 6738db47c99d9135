// The optimizer.
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/optimizer/optimizer.h"

namespace mgc::cpu {
namespace {

KernelOr MakeAdamw(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32) || spec.input_types[0].dtype != DType::kF32) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    const auto scalar = [&run](int i) { return *In<double>(run, i); };
    AdamwScalars s;
    s.lr = scalar(4);
    s.decay = decays ? scalar(5) : 0;
    s.beta1 = scalar(6);
    s.beta2 = scalar(7);
    s.eps = scalar(8);
    s.correction1 = scalar(9);
    s.correction2 = scalar(10);
    s.grad_scale = scalar(11);
    Adamw(parallel, n, s, X(run, 0), X(run, 1), X(run, 2), X(run, 3), Y(run, 0), Y(run, 1),
          Y(run, 2));
  });
}

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"adamw", MakeAdamw},
  };
  return kEntries;
}

}  // namespace mgc::cpu
