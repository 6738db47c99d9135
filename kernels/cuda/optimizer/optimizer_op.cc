// The optimizers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/joined_kernel.h"
#include "kernels/cuda/optimizer/optimizer.h"

namespace mgc::cuda {
namespace {

// Whether an optimizer's step has a kernel: on tensors of f32.
bool IsOfFloats(const KernelSpec& spec) {
  return AllAre(spec, DType::kF32) && spec.input_types[0].dtype == DType::kF32;
}

// A step's operands are its tensors, then its numbers and, of one that is guarded, whether it
// applies.
struct StepPlaces {
  int tensors = 0, numbers = 0, results = 0;
  bool guarded = false;
  int kept[StepArrays::kMostResults] = {-1, -1, -1};
};

StepPlaces PlacesOf(const KernelSpec& spec, bool guarded) {
  StepPlaces places;
  places.guarded = guarded;
  for (const TensorType& type : spec.input_types) {
    ++(type.dtype == DType::kF32 ? places.tensors : places.numbers);
  }
  if (guarded) --places.numbers;
  places.results = static_cast<int>(spec.output_types.size());
  for (int r = 0; r < places.results; ++r) places.kept[r] = OperandInPlace(*spec.op, r);
  return places;
}

StepArrays ArraysOf(const StepPlaces& places, const KernelRun& run) {
  StepArrays arrays;
  for (int i = 0; i < places.tensors; ++i) arrays.operands[i] = In<float>(run, i);
  for (int i = 0; i < places.numbers; ++i) {
    arrays.numbers[i] = In<double>(run, places.tensors + i);
  }
  for (int r = 0; r < places.results; ++r) arrays.results[r] = Out<float>(run, r);
  if (places.guarded) arrays.apply = In<double>(run, places.tensors + places.numbers);
  std::copy(std::begin(places.kept), std::end(places.kept), std::begin(arrays.kept));
  return arrays;
}

// One tensor's step, which may be issued with those of others.
class StepKernel : public JoinedKernel {
 public:
  StepKernel(IssueSteps issue, int64_t n, bool decays, const StepPlaces& places)
      : issue_(issue), n_(n), decays_(decays), places_(places) {}

  IssueSteps issue() const override { return issue_; }
  StepPart PartOf(const KernelRun& run) const override {
    return {n_, decays_, ArraysOf(places_, run)};
  }
  absl::Status Run(const KernelRun& run, Parallel& /*parallel*/) const override {
    const StepPart part = PartOf(run);
    return LaunchStatus(issue_(run.queue, &part, 1), "an optimizer's step");
  }

 private:
  const IssueSteps issue_;
  const int64_t n_;
  const bool decays_;
  const StepPlaces places_;
};

template <IssueSteps kIssue, bool kGuarded>
KernelOr MakeStep(const KernelSpec& spec) {
  if (!IsOfFloats(spec)) return NoKernel(spec);
  const bool decays = spec.attrs.Find("decay") != nullptr && spec.attrs.Int("decay") != 0;
  auto step = std::make_shared<const StepKernel>(kIssue, OutSize(spec, 0), decays,
                                                 PlacesOf(spec, kGuarded));
  // What is padded gets its zeros behind the step.
  if (!PaddingOf(spec).empty()) {
    return MakeKernel(spec, [step](const KernelRun& run, Stream stream) {
      const StepPart part = step->PartOf(run);
      return step->issue()(stream, &part, 1);
    });
  }
  return std::make_unique<StepKernel>(*step);
}

KernelOr MakeInverseNorm(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [eps = spec.attrs.Real("eps")](const KernelRun& run, Stream stream) {
    return InverseNorm(stream, eps, In<double>(run, 0), Out<double>(run, 0));
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
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
    return Scale(stream, n, factor, In<float>(run, 0), Out<float>(run, 0));
  });
}

KernelOr MakeIsFinite(const KernelSpec& spec) {
  const auto plain = [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [n = OutSize(spec, 0)](const KernelRun& run, Stream stream) {
      return IsFinite(stream, n, In<T>(run, 0), Out<T>(run, 0));
    });
  };
  if (AllAre(spec, DType::kF64)) return plain(double());
  return AllAre(spec, DType::kF32) ? plain(float()) : NoKernel(spec);
}

KernelOr MakeBiasCorrection(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Stream stream) {
    return BiasCorrection(stream, In<double>(run, 0), In<double>(run, 1), Out<double>(run, 0));
  });
}

KernelOr MakeNextLossScale(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Stream stream) {
    LossScaleNumbers numbers;
    for (int i = 0; i < 7; ++i) numbers.numbers[i] = In<double>(run, i);
    for (int r = 0; r < 3; ++r) numbers.results[r] = Out<double>(run, r);
    return NextLossScale(stream, numbers);
  });
}

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"adam", MakeStep<Adam, false>},
      {"adamw", MakeStep<Adamw, false>},
      {"bias_correction", MakeBiasCorrection},
      {"decayed_step", MakeStep<DecayedStep, false>},
      {"guarded_adam", MakeStep<Adam, true>},
      {"guarded_adamw", MakeStep<Adamw, true>},
      {"guarded_decayed_step", MakeStep<DecayedStep, true>},
      {"guarded_lion", MakeStep<Lion, true>},
      {"guarded_nesterov", MakeStep<Nesterov, true>},
      {"guarded_sgd", MakeStep<Sgd, true>},
      {"inverse_norm", MakeInverseNorm},
      {"is_finite", MakeIsFinite},
      {"lion", MakeStep<Lion, false>},
      {"nesterov", MakeStep<Nesterov, false>},
      {"next_loss_scale", MakeNextLossScale},
      {"sgd", MakeStep<Sgd, false>},
      {"spectral_scale", MakeSpectralScale},
  };
  return kEntries;
}

}  // namespace mgc::cuda
