// The optimizers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/optimizer/optimizer.h"

namespace mgc::cpu {
namespace {

// Whether an optimizer's step has a kernel: on tensors of f32.
bool IsOfFloats(const KernelSpec& spec) {
  return AllAre(spec, DType::kF32) && spec.input_types[0].dtype == DType::kF32;
}

double Number(const KernelRun& run, int i) { return *In<double>(run, i); }

using AdamFunction = void (*)(Parallel&, int64_t, const AdamwScalars&, const float*, const float*,
                              const float*, const float*, float*, float*, float*);

template <AdamFunction kStep>
KernelOr MakeAdam(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    AdamwScalars s;
    s.lr = Number(run, 4);
    s.decay = decays ? Number(run, 5) : 0;
    s.beta1 = Number(run, 6);
    s.beta2 = Number(run, 7);
    s.eps = Number(run, 8);
    s.correction1 = Number(run, 9);
    s.correction2 = Number(run, 10);
    s.grad_scale = Number(run, 11);
    kStep(parallel, n, s, X(run, 0), X(run, 1), X(run, 2), X(run, 3), Y(run, 0), Y(run, 1),
          Y(run, 2));
  });
}

KernelOr MakeSgd(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    const SgdScalars s = {Number(run, 3), decays ? Number(run, 4) : 0, Number(run, 5),
                          Number(run, 6)};
    Sgd(parallel, n, s, X(run, 0), X(run, 1), X(run, 2), Y(run, 0), Y(run, 1));
  });
}

KernelOr MakeLion(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    const LionScalars s = {Number(run, 3), decays ? Number(run, 4) : 0, Number(run, 5),
                           Number(run, 6), Number(run, 7)};
    Lion(parallel, n, s, X(run, 0), X(run, 1), X(run, 2), Y(run, 0), Y(run, 1));
  });
}

KernelOr MakeNesterov(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    Nesterov(parallel, n, Number(run, 2), Number(run, 3), X(run, 0), X(run, 1), Y(run, 0),
             Y(run, 1));
  });
}

KernelOr MakeDecayedStep(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const bool decays = spec.attrs.Int("decay") != 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    DecayedStep(parallel, n, Number(run, 2), decays ? Number(run, 3) : 0, X(run, 0), X(run, 1),
                Y(run, 0));
  });
}

// A step that is taken where its last operand is 1. Where that is 0 results are the operands whose
// place they may take, and zero where they may take none.
class GuardedKernel : public Kernel {
 public:
  GuardedKernel(const KernelSpec& spec, std::unique_ptr<Kernel> step)
      : op_(*spec.op),
        apply_(static_cast<int>(spec.input_types.size()) - 1),
        step_(std::move(step)) {
    for (size_t r = 0; r < spec.output_types.size(); ++r) {
      bytes_.push_back(OutSize(spec, static_cast<int>(r)) * SizeOf(spec.output_types[r].dtype));
    }
  }

  absl::Status Run(const KernelRun& run, Parallel& parallel) const override {
    if (Number(run, apply_) != 0) return step_->Run(run, parallel);
    for (size_t r = 0; r < bytes_.size(); ++r) {
      const int result = static_cast<int>(r);
      const int operand = OperandInPlace(op_, result);
      if (operand < 0) {
        std::memset(Out<char>(run, result), 0, static_cast<size_t>(bytes_[r]));
      } else {
        CopyBytes(parallel, bytes_[r], In<char>(run, operand), Out<char>(run, result));
      }
    }
    return absl::OkStatus();
  }

 private:
  const OpDef& op_;
  const int apply_;
  std::unique_ptr<Kernel> step_;
  std::vector<int64_t> bytes_;  // of results
};

template <KernelFactory kMake>
KernelOr MakeGuarded(const KernelSpec& spec) {
  KernelOr step = kMake(spec);
  if (!step.ok()) return step.status();
  return std::make_unique<GuardedKernel>(spec, *std::move(step));
}

KernelOr MakeInverseNorm(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [eps = spec.attrs.Real("eps")](const KernelRun& run, Parallel&) {
    *Out<double>(run, 0) = 1 / (std::sqrt(Number(run, 0)) + eps);
  });
}

// The whole matrix is here: its tile has its sides.
KernelOr MakeSpectralScale(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const size_t row_dims = static_cast<size_t>(spec.attrs.Int("row_dims"));
  const int64_t rows = NumElements(absl::MakeSpan(shape).first(row_dims));
  const int64_t columns = NumElements(absl::MakeSpan(shape).subspan(row_dims));
  const auto factor = static_cast<float>(0.2 * std::sqrt(std::max(rows, columns)));
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    Scale(parallel, n, factor, X(run, 0), Y(run, 0));
  });
}

KernelOr MakeIsFinite(const KernelSpec& spec) {
  const int64_t n = OutSize(spec, 0);
  const auto plain = [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n](const KernelRun& run, Parallel&) {
      for (int64_t i = 0; i < n; ++i) {
        Out<T>(run, 0)[i] = static_cast<T>(std::isfinite(In<T>(run, 0)[i]) ? 1 : 0);
      }
    });
  };
  if (AllAre(spec, DType::kF64)) return plain(double());
  return AllAre(spec, DType::kF32) ? plain(float()) : NoKernel(spec);
}

KernelOr MakeBiasCorrection(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    *Out<double>(run, 0) = 1 - std::pow(*In<double>(run, 0), *In<double>(run, 1) + 1);
  });
}

KernelOr MakeNextLossScale(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    const auto scalar = [&run](int i) { return *In<double>(run, i); };
    LossScale state = {scalar(0), scalar(1), scalar(2)};
    state = NextLossScale(state, scalar(3) != 0, {scalar(4), scalar(5), scalar(6)});
    *Out<double>(run, 0) = state.scale;
    *Out<double>(run, 1) = state.growth;
    *Out<double>(run, 2) = state.left;
  });
}

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"adam", MakeAdam<Adam>},
      {"adamw", MakeAdam<Adamw>},
      {"bias_correction", MakeBiasCorrection},
      {"decayed_step", MakeDecayedStep},
      {"guarded_adam", MakeGuarded<MakeAdam<Adam>>},
      {"guarded_adamw", MakeGuarded<MakeAdam<Adamw>>},
      {"guarded_decayed_step", MakeGuarded<MakeDecayedStep>},
      {"guarded_lion", MakeGuarded<MakeLion>},
      {"guarded_nesterov", MakeGuarded<MakeNesterov>},
      {"guarded_sgd", MakeGuarded<MakeSgd>},
      {"inverse_norm", MakeInverseNorm},
      {"is_finite", MakeIsFinite},
      {"lion", MakeLion},
      {"nesterov", MakeNesterov},
      {"next_loss_scale", MakeNextLossScale},
      {"sgd", MakeSgd},
      {"spectral_scale", MakeSpectralScale},
  };
  return kEntries;
}

}  // namespace mgc::cpu
