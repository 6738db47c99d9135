// Gradients of attention.

#include <algorithm>

#include "graph/ops/attention_shared.h"

namespace mgc {
namespace {

// Queries and gradients of one head's results, each packed both ways; 128 rows of keys, values,
// their gradients and scores. Gradients of a narrow type are summed in scratch.
int64_t AttentionGradWorkspace(const OpUse& use) {
  const HeadSizes head = HeadSizesOf(*use.operands[1], *use.operands[2]);
  const DType dtype = use.operands[1]->dtype;
  const int64_t row = 4 * head.depth + 128;
  const int64_t tensors = dtype == WideOf(dtype) ? 4 : 7;
  return (tensors * head.tokens * head.depth + 128 * row) * SizeOf(WideOf(dtype));
}

// Of a GPU whose tensor cores take the type: where a block of threads goes through keys of a head,
// the gradients of queries are added up beside it, once for each part that the keys are cut into.
// As many parts as keep a GPU busy, four at most; and none, where even these would leave most of it
// idle and a pass of its own for the queries is faster. Sums are of whole tiles.
int64_t AttentionGradGpuWorkspace(const OpUse& use) {
  constexpr int64_t kBusy = 256, kIdle = 128;  // blocks of threads
  constexpr int64_t kMostParts = 4, kKeysOfBlock = 128, kQueriesOfTile = 64, kDepth = 64;
  const TensorType& q = *use.operands[1];
  const TensorType& k = *use.operands[2];
  const int64_t heads = k.dims[0].size * k.dims[2].size, keys = k.dims[1].size;
  if (SizeOf(q.dtype) != 2 || heads == 0) return 0;
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t parts =
      std::min({ceil_div(kBusy, heads), ceil_div(keys, kKeysOfBlock), kMostParts});
  if (parts * heads < kIdle) return 0;
  const int64_t rows = ceil_div(q.dims[1].size, kQueriesOfTile) * kQueriesOfTile;
  const int64_t depth = ceil_div(q.dims[3].size, kDepth) * kDepth;
  return parts * q.dims[0].size * q.dims[2].size * rows * depth * SizeOf(DType::kF32);
}

// With P the probabilities before dropout, K what dropout multiplies by and D = dy . o of the row:
// dv += P K dy, dS = slope P (K (dy . v) - D), dq = dS k, dk = dS q; the slope is that of the
// score.
struct EvalAttentionGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const AttentionView<M> view(c, kAttentionGradPlaces);
    const auto& dy = c.in(0);
    ForEachRow(view, [&](int64_t b, int64_t s, int64_t head) {
      const size_t q_row = view.QueryRow(b, s, head);
      const auto& lse = c.in(5).real[view.Statistic(b, s, head)];
      const auto row_dot = view.Dot(dy, q_row, c.in(4), q_row);
      for (int64_t t = 0; t < view.keys; ++t) {
        if (!view.Visible(s, t)) continue;
        const size_t k_row = view.KeyRow(b, t, head);
        const auto p = m.ExpDiff(view.Score(b, s, t, head), lse);
        const auto kept = view.Kept(b, s, t, head);
        const auto dp = m.Mul(kept, view.Dot(dy, q_row, c.in(3), k_row));
        const auto ds = m.Mul(view.Slope(b, s, t, head), m.Mul(p, m.Sub(dp, row_dot)));
        AddRow(m, ds, c.in(2), k_row, &c.out(0), q_row, view.depth);
        AddRow(m, ds, c.in(1), q_row, &c.out(1), k_row, view.depth);
        AddRow(m, m.Mul(p, kept), dy, q_row, &c.out(2), k_row, view.depth);
      }
    });
  }
};

OpDef AttentionGrad() {
  OpDef op;
  op.name = "attention_grad";
  op.doc = "Gradients of attention with respect to q, k and v.";
  op.operands = {"dy", "q", "k", "v", "o", "lse", "qpos", "kpos"};
  op.results = {"dq", "dk", "dv"};
  op.attrs = AttentionAttrs();
  op.roles = {OpRole::kRandom};
  op.index_operands = {6, 7};
  op.wide_operands = {5};
  op.check = [](const OpUse& use) { return CheckAttention("attention_grad", use); };
  op.rule =
      "b s (k g) d!, b s (k g) d!, b t! k d!, b t! k d!, b s (k g) d!, b (k g) s, s, t! -> "
      "b s (k g) d!, b t! k d!, b t! k d!";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.offset_factors = {"b", "k", "g", "s", "t"};
  op.no_grad = "a gradient itself; second derivatives are not taken";
  // Scores once more, and the gradients of scores, queries, keys and values.
  op.flops = [](const OpUse& use) {
    return AttentionFlops(use, *use.operands[1], *use.operands[2], 5);
  };
  op.workspace = AttentionGradWorkspace;
  op.gpu_workspace = AttentionGradGpuWorkspace;
  op.eval = EvalWith<EvalAttentionGrad>();
  const Attrs plain = PlainAttention();
  const Attrs dropped = DroppedAttention();
  op.cases = {{"f32[2,4,4,3], f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], f32[2,4,4,3], f32[2,4,4], "
               "i64[4]<5, i64[4]<5",
               plain},
              {"f32[2,2,4,2], f32[2,2,4,2], f32[2,5,2,2], f32[2,5,2,2], f32[2,2,4,2], f32[2,4,2], "
               "i64[2]<5, i64[5]<3",
               dropped},
              {"f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1], "
               "i64[1]<1, i64[1]<1",
               plain},
              {"f32[2,5,4,3], f32[2,5,4,3], f32[2,6,2,3], f32[2,6,2,3], f32[2,5,4,3], f32[2,4,5], "
               "i64[5]<7, i64[6]<6",
               Windowed(plain)},
              {"f32[2,4,4,3], f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], f32[2,4,4,3], f32[2,4,4], "
               "i64[4]<5, i64[4]<5",
               Capped(Windowed(dropped)), -2.0, 2.0},
              {"f32[2,3,4,3], f32[2,3,4,3], f32[2,5,2,3], f32[2,5,2,3], f32[2,3,4,3], f32[2,4,3], "
               "i64[3]<5, i64[5]<5",
               OverAll(dropped)}};
  return op;
}

OpDef SegmentAttentionGrad() {
  const Attrs plain = PlainAttention();
  const Attrs dropped = DroppedAttention();
  OpDef op = InSegments(
      AttentionGrad(), "b s (k g) d!, b t! k d!, b t! k d!",
      {{"f32[2,4,4,3], f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], f32[2,4,4,3], f32[2,4,4], "
        "i64[4]<5, i64[4]<5, i64[2,4]<2, i64[2,4]<2",
        plain},
       {"f32[2,3,4,3], f32[2,3,4,3], f32[2,5,2,3], f32[2,5,2,3], f32[2,3,4,3], f32[2,4,3], "
        "i64[3]<5, i64[5]<5, i64[2,3]<2, i64[2,5]<2",
        Capped(OverAll(dropped)), -2.0, 2.0}});
  op.doc = "Gradients of segment_attention with respect to q, k and v.";
  return op;
}

}  // namespace

std::vector<OpDef> AttentionGradOps() { return {AttentionGrad(), SegmentAttentionGrad()}; }

}  // namespace mgc
