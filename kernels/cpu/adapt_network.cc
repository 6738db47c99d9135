// Norms, rotary embedding, attention and embedding tables.
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/ops/rope_frequencies.h"
#include "graph/random.h"
#include "kernels/cpu/adapt.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rope.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Rows and columns of an operand.
struct Matrix {
  int64_t rows, cols;
};

Matrix MatrixOf(const KernelSpec& spec, size_t operand) {
  return {LeadingDims(spec.input_shapes[operand]), LastDim(spec.input_shapes[operand])};
}

KernelOr MakeLayerNorm(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  return MakeKernel(spec, [eps, x = MatrixOf(spec, 0)](const KernelRun& run, Parallel& parallel) {
    LayerNorm(parallel, x.rows, x.cols, eps, X(run, 0), X(run, 1), X(run, 2), Y(run, 0), Y(run, 1),
              Y(run, 2));
  });
}

KernelOr MakeLayerNormGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [x = MatrixOf(spec, 1)](const KernelRun& run, Parallel& parallel) {
    LayerNormGrad(parallel, x.rows, x.cols, X(run, 0), X(run, 1), X(run, 2), X(run, 3), X(run, 4),
                  Y(run, 0));
  });
}

KernelOr MakeLayerNormParamGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [x = MatrixOf(spec, 1)](const KernelRun& run, Parallel& parallel) {
    LayerNormParamGrad(parallel, x.rows, x.cols, X(run, 0), X(run, 1), X(run, 2), X(run, 3), false,
                       Y(run, 0), Y(run, 1));
  });
}

KernelOr MakeRmsNorm(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const float eps = static_cast<float>(spec.attrs.Real("eps"));
  return MakeKernel(spec, [eps, x = MatrixOf(spec, 0)](const KernelRun& run, Parallel& parallel) {
    RmsNorm(parallel, x.rows, x.cols, eps, X(run, 0), X(run, 1), Y(run, 0), Y(run, 1));
  });
}

KernelOr MakeRmsNormGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [x = MatrixOf(spec, 1)](const KernelRun& run, Parallel& parallel) {
    RmsNormGrad(parallel, x.rows, x.cols, X(run, 0), X(run, 1), X(run, 2), X(run, 3), Y(run, 0));
  });
}

KernelOr MakeRmsNormParamGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(spec, [x = MatrixOf(spec, 1)](const KernelRun& run, Parallel& parallel) {
    RmsNormParamGrad(parallel, x.rows, x.cols, X(run, 0), X(run, 1), X(run, 2), false, Y(run, 0));
  });
}

KernelOr MakeRope(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const int64_t tokens = shape[0] * shape[1], heads = shape[2], d = shape[3];
  const bool inverse = spec.attrs.Int("inverse") != 0;
  std::vector<double> frequencies = RopeFrequencies(spec.attrs, d);
  return MakeKernel(spec, [=, seq = shape[1], frequencies = std::move(frequencies)](
                              const KernelRun& run, Parallel& parallel) {
    Rope(parallel, tokens, heads, d, X(run, 0), In<int64_t>(run, 1), seq, frequencies.data(),
         inverse, Y(run, 0));
  });
}

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
  return s;
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

KernelOr MakeAttention(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const AttentionShape shape = AttentionShapeOf(spec, 0, 1);
  const AttentionDropout dropout = AttentionDropoutOf(spec);
  const uint64_t stride = SampleStride(spec, dropout);
  return MakeKernel(
      spec,
      [=](const KernelRun& run, Parallel& parallel) {
        Attention(parallel, shape,
                  Shifted(dropout, static_cast<uint64_t>(run.first_sample) * stride),
                  {In<int64_t>(run, 3), In<int64_t>(run, 4)}, X(run, 0), X(run, 1), X(run, 2),
                  Y(run, 0), Y(run, 1), Scratch(run));
      },
      [shape](int width) { return kFloat * AttentionWorkspaceFloats(shape, width); });
}

KernelOr MakeAttentionGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const AttentionShape shape = AttentionShapeOf(spec, 1, 2);
  const AttentionDropout dropout = AttentionDropoutOf(spec);
  const uint64_t stride = SampleStride(spec, dropout);
  return MakeKernel(
      spec,
      [=](const KernelRun& run, Parallel& parallel) {
        AttentionGrad(
            parallel, shape, Shifted(dropout, static_cast<uint64_t>(run.first_sample) * stride),
            {In<int64_t>(run, 6), In<int64_t>(run, 7)}, X(run, 0), X(run, 1), X(run, 2), X(run, 3),
            X(run, 4), X(run, 5), Y(run, 0), Y(run, 1), Y(run, 2), Scratch(run));
      },
      [shape](int width) { return kFloat * AttentionGradWorkspaceFloats(shape, width); });
}

TableShape TableOf(const KernelSpec& spec) {
  const DimPiece& v = PieceNamed(spec, "v");
  return {spec.input_shapes[0][0], spec.input_shapes[0][1], v.valid, v.begin};
}

KernelOr MakeLookup(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(
      spec, [table = TableOf(spec), n = InSize(spec, 1)](const KernelRun& run, Parallel& parallel) {
        Lookup(parallel, table, X(run, 0), n, In<int64_t>(run, 1), Y(run, 0));
      });
}

KernelOr MakeLookupGrad(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  return MakeKernel(
      spec, [table = TableOf(spec), n = InSize(spec, 1)](const KernelRun& run, Parallel& parallel) {
        LookupGrad(parallel, table, n, In<int64_t>(run, 1), X(run, 2), false, Y(run, 0));
      });
}

KernelOr MakeLookupGradAccumulate(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF32)) return NoKernel(spec);
  const int64_t bytes = OutSize(spec, 0) * kFloat;
  return MakeKernel(spec, [bytes, table = TableOf(spec), n = InSize(spec, 1)](const KernelRun& run,
                                                                              Parallel& parallel) {
    CopyBytes(parallel, bytes, In<char>(run, 0), Out<char>(run, 0));
    LookupGrad(parallel, table, n, In<int64_t>(run, 1), X(run, 2), true, Y(run, 0));
  });
}

}  // namespace

absl::Span<const KernelEntry> NetworkKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"attention", MakeAttention},
      {"attention_grad", MakeAttentionGrad},
      {"layer_norm", MakeLayerNorm},
      {"layer_norm_grad", MakeLayerNormGrad},
      {"layer_norm_param_grad", MakeLayerNormParamGrad},
      {"lookup", MakeLookup},
      {"lookup_grad", MakeLookupGrad},
      {"lookup_grad_accumulate", MakeLookupGradAccumulate},
      {"rms_norm", MakeRmsNorm},
      {"rms_norm_grad", MakeRmsNormGrad},
      {"rms_norm_param_grad", MakeRmsNormParamGrad},
      {"rope", MakeRope},
  };
  return kEntries;
}

}  // namespace mgc::cpu
