// Attention.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "graph/base/random.h"
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/attention/attention.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);

// `q` and `k` are the places of these operands.
AttentionShape AttentionShapeOf(const KernelSpec& spec, size_t q, size_t k) {
  const std::vector<int64_t>& queries = spec.input_shapes[q];
  const std::vector<int64_t>& keys = spec.input_shapes[k];
  AttentionShape s;
  s.batch = queries[0];
  s.queries = queries[1];
  s.heads = queries[2];
  s.dim = queries[3];
  s.keys = keys[1];
  s.kv_heads = keys[2];
  s.scale = static_cast<float>(spec.attrs.Real("scale"));
  if (spec.attrs.Find("window") != nullptr) s.window = spec.attrs.Int("window");
  if (spec.attrs.Find("cap") != nullptr) s.cap = static_cast<float>(spec.attrs.Real("cap"));
  if (spec.attrs.Find("causal") != nullptr) s.causal = spec.attrs.Int("causal") != 0;
  return s;
}

// Positions, the first of them operand `at`, and the segments behind them where the op has any.
AttentionPositions PositionsOf(const KernelRun& run, size_t at, bool segments) {
  AttentionPositions positions = {In<int64_t>(run, at), In<int64_t>(run, at + 1)};
  if (segments) {
    positions.query_segments = In<int64_t>(run, at + 2);
    positions.key_segments = In<int64_t>(run, at + 3);
  }
  return positions;
}

// The logical index of a pair counts sample, head, query and key of the whole tensors; heads are
// groups of key-value heads.
AttentionDropout AttentionDropoutOf(const KernelSpec& spec) {
  AttentionDropout dropout;
  dropout.p = spec.attrs.Real("p");
  dropout.stream = {spec.seed, StreamOf(spec.attrs.Text("key"))};
  dropout.query = WholeSize(spec, "t");
  dropout.head = dropout.query * WholeSize(spec, "s");
  dropout.kv_head = dropout.head * WholeSize(spec, "g");
  dropout.batch = dropout.kv_head * WholeSize(spec, "k");
  const auto begin = [&spec](const char* factor) {
    return static_cast<uint64_t>(PieceNamed(spec, factor).begin);
  };
  dropout.base = begin("b") * dropout.batch + begin("k") * dropout.kv_head +
                 begin("g") * dropout.head + begin("s") * dropout.query + begin("t");
  return dropout;
}

// Logical index steps from one sample of the global batch to the next.
uint64_t SampleStride(const KernelSpec& spec, const AttentionDropout& dropout) {
  return BatchFactor(spec) == spec.rule.Find("b") ? dropout.batch : 0;
}

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
