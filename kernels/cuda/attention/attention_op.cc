// Attention.
#include <cstdint>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_group_shape.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"
#include "kernels/shared/attention_spec.h"

namespace mgc::cuda {
namespace {

// `q` and `k` are the places of these operands.
AttentionUse UseOf(const KernelSpec& spec, size_t q, size_t k) {
  AttentionUse use;
  use.shape = AttentionShapeOf(spec, q, k);
  use.dropout = AttentionDropoutOf(spec);
  use.rule = MakeDropoutRule(use.dropout.p, use.dropout.stream);
  use.sample_stride = SampleStride(spec, use.dropout);
  return use;
}

AttentionUse InRun(AttentionUse use, const KernelRun& run, int positions, bool segments) {
  use.positions = PositionsOf(run, positions, segments);
  use.sample = SampleOf(run);
  return use;
}

// What the gradients of queries are added up in.
int64_t SumsBytes(const AttentionShape& s) {
  return s.batch * s.heads * QuerySumsOfHead(s.queries, TensorDim(s.dim)) *
         static_cast<int64_t>(sizeof(float));
}

template <bool kSegments>
KernelOr MakeAttention(const KernelSpec& spec) {
  const AttentionUse use = UseOf(spec, 0, 1);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [use](const KernelRun& run, Stream stream) {
      const AttentionOperands<T> in = {In<T>(run, 0), In<T>(run, 1), In<T>(run, 2)};
      return Attention(stream, InRun(use, run, 3, kSegments), in, Out<T>(run, 0),
                       Out<float>(run, 1));
    });
  });
}

template <bool kSegments>
KernelOr MakeAttentionGrad(const KernelSpec& spec) {
  const AttentionUse use = UseOf(spec, 1, 2);
  const int64_t room = TensorCoresTake(use.shape) ? WorkspaceBoundOf(spec, KernelHost::kGpu) : 0;
  const int64_t of_part = SumsBytes(use.shape);
  const auto parts = static_cast<int>(of_part > 0 ? room / of_part : 0);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const auto issue = [use, parts](const KernelRun& run, Stream stream) {
      const AttentionOperands<T> in = {In<T>(run, 1), In<T>(run, 2), In<T>(run, 3)};
      const AttentionResults<T> results = {In<T>(run, 0), In<T>(run, 4), In<float>(run, 5)};
      const AttentionGradients<T> out = {Out<T>(run, 0), Out<T>(run, 1), Out<T>(run, 2)};
      return AttentionGrad(stream, InRun(use, run, 6, kSegments), in, results, out,
                           {static_cast<float*>(run.workspace), parts});
    };
    return MakeKernel(spec, issue, parts * of_part);
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

}  // namespace mgc::cuda
