// Attention.
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/shared/attention_spec.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);

AttentionDropout Shifted(AttentionDropout dropout, uint64_t by) {
  dropout.base += by;
  return dropout;
}

template <bool kSegments>
KernelOr MakeAttention(const KernelSpec& spec) {
  const AttentionShape shape = AttentionShapeOf(spec, 0, 1);
  const AttentionDropout dropout = AttentionDropoutOf(spec);
  const uint64_t stride = SampleStride(spec, dropout);
  const auto workspace = [shape](int width) {
    return kFloat * AttentionWorkspaceFloats(shape, width);
  };
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto attend = [=](const KernelRun& run, Parallel& parallel) {
      Attention(parallel, shape, Shifted(dropout, static_cast<uint64_t>(run.first_sample) * stride),
                PositionsOf(run, 3, kSegments), In<T>(run, 0), In<T>(run, 1), In<T>(run, 2),
                Out<T>(run, 0), Y(run, 1), Scratch(run));
    };
    return MakeKernel(spec, attend, workspace);
  });
}

template <bool kSegments>
KernelOr MakeAttentionGrad(const KernelSpec& spec) {
  const AttentionShape shape = AttentionShapeOf(spec, 1, 2);
  const AttentionDropout dropout = AttentionDropoutOf(spec);
  const uint64_t stride = SampleStride(spec, dropout);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto attend = [=](const KernelRun& run, Parallel& parallel) {
      AttentionGrad(parallel, shape,
                    Shifted(dropout, static_cast<uint64_t>(run.first_sample) * stride),
                    PositionsOf(run, 6, kSegments), In<T>(run, 0), In<T>(run, 1), In<T>(run, 2),
                    In<T>(run, 3), In<T>(run, 4), X(run, 5), Out<T>(run, 0), Out<T>(run, 1),
                    Out<T>(run, 2), Scratch(run));
    };
    const auto workspace = [shape](int width) {
      const int64_t floats = std::is_same_v<T, float>
                                 ? AttentionGradWorkspaceFloats(shape, width)
                                 : NarrowAttentionGradWorkspaceFloats(shape, width);
      return kFloat * floats;
    };
    return MakeKernel(spec, attend, workspace);
  });
}

}  // namespace

absl::Span<const KernelEntry> AttentionKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"attention", MakeAttention<false>},
      {"attention_grad", MakeAttentionGrad<false>},
      {"segment_attention", MakeAttention<true>},
      {"segment_attention_grad", MakeAttentionGrad<true>},
  };
  return kEntries;
}

}  // namespace mgc::cpu
