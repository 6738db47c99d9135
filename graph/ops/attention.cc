// Scaled dot-product attention with grouped queries: causal or over all keys; where asked, over a
// window (Beltagy et al., arXiv 2004.05150), inside segments (padding, packed documents), and with
// bounded scores (Gemma team, arXiv 2408.00118).
//
// Written with ExpDiff, LogShift and Max only, so that blocked and rescaled forms of the same
// softmax are exactly equal to it in every scalar model. What is saved for the gradient is the
// row's logarithm of the sum of exponentials (Dao et al., arXiv 2205.14135, section 3), never the
// scores.

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ops/attention_shared.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

struct EvalAttention {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const AttentionView<M> view(c, kAttentionPlaces);
    ForEachRow(view, [&](int64_t b, int64_t s, int64_t head) {
      auto most = m.NegInf();
      for (int64_t t = 0; t < view.keys; ++t) {
        if (view.Visible(s, t)) most = m.Max(most, view.Score(b, s, t, head));
      }
      auto sum = m.Constant(0);
      for (int64_t t = 0; t < view.keys; ++t) {
        if (view.Visible(s, t)) sum = m.Add(sum, m.ExpDiff(view.Score(b, s, t, head), most));
      }
      const auto lse = m.LogShift(sum, most);
      c.out(1).real[view.Statistic(b, s, head)] = lse;
      for (int64_t t = 0; t < view.keys; ++t) {
        if (!view.Visible(s, t)) continue;
        const auto weight =
            m.Mul(m.ExpDiff(view.Score(b, s, t, head), lse), view.Kept(b, s, t, head));
        AddRow(m, weight, c.in(2), view.KeyRow(b, t, head), &c.out(0), view.QueryRow(b, s, head),
               view.depth);
      }
    });
  }
};

// `segments`: of the op that has them.
absl::Status AttentionDerivative(GradContext& c, bool segments) {
  const std::string name = segments ? SegmentName("attention") : "attention";
  if (c.output_grad(1) != kNone) {
    return Refuse(name, 2, "the saved statistic lse has no gradient");
  }
  const ValueId dy = c.output_grad(0);
  if (dy == kNone || !(c.wants(0) || c.wants(1) || c.wants(2))) return absl::OkStatus();
  std::vector<ValueId> operands = {dy,          c.input(0),  c.input(1), c.input(2),
                                   c.output(0), c.output(1), c.input(3), c.input(4)};
  for (int i = kAttentionPlaces.positions + 2; i < c.num_inputs(); ++i)
    operands.push_back(c.input(i));
  const std::vector<ValueId> made =
      c.EmitAll(absl::StrCat(name, "_grad"), std::move(operands), c.attrs());
  for (int i = 0; i < 3; ++i) {
    if (c.wants(i)) c.Add(i, made[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

// Keys and values of one head, packed; 64 rows of queries, results and scores.
int64_t AttentionWorkspace(const OpUse& use) {
  const HeadSizes head = HeadSizesOf(*use.operands[0], *use.operands[1]);
  const int64_t row = 2 * head.depth + 128;
  return (2 * head.tokens * head.depth + 64 * row) * SizeOf(WideOf(use.operands[0]->dtype));
}

OpDef Attention() {
  OpDef op;
  op.name = "attention";
  op.doc =
      "Attention of q[b,s,h,d] over k, v[b,t,kv,d] (key visible iff kpos <= qpos, and with a "
      "window iff qpos - kpos < window; with causal 0, all keys are; query head h reads kv head "
      "h / (H / KV); with a cap, scores are cap * tanh(score / cap)), with lse[b,h,s].";
  op.operands = {"q", "k", "v", "qpos", "kpos"};
  op.results = {"o", "lse"};
  op.attrs = AttentionAttrs();
  op.roles = {OpRole::kRandom, OpRole::kRecompute};
  op.index_operands = {3, 4};
  op.wide_results = {1};
  op.check = [](const OpUse& use) { return CheckAttention("attention", use); };
  op.rule = "b s (k g) d!, b t! k d!, b t! k d!, s, t! -> b s (k g) d!, b (k g) s";
  op.offset_factors = {"b", "k", "g", "s", "t"};
  op.grad = [](GradContext& c) { return AttentionDerivative(c, /*segments=*/false); };
  op.saved_results = 1;
  op.flops = [](const OpUse& use) {
    return AttentionFlops(use, *use.operands[0], *use.operands[1], 2);
  };
  op.workspace = AttentionWorkspace;
  op.eval = EvalWith<EvalAttention>();
  const Attrs plain = PlainAttention();
  const Attrs dropped = DroppedAttention();
  op.cases = {
      {"f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], i64[4]<5, i64[4]<5", plain, -2.0, 2.0},
      {"f32[2,2,2,2], f32[2,5,2,2], f32[2,5,2,2], i64[2]<5, i64[5]<3", dropped},
      {"f32[1,4,4,2], f32[1,4,1,2], f32[1,4,1,2], i64[4]<4, i64[4]<4", dropped, -2.0, 2.0},
      {"f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1]<1, i64[1]<1", plain},
      {"f32[2,5,4,3], f32[2,6,2,3], f32[2,6,2,3], i64[5]<7, i64[6]<6", Windowed(plain), -2.0, 2.0},
      {"f32[1,6,2,2], f32[1,6,1,2], f32[1,6,1,2], i64[6]<6, i64[6]<6", Windowed(dropped)},
      {"f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], i64[4]<5, i64[4]<5", Capped(plain), -3.0, 3.0},
      {"f32[1,6,2,2], f32[1,6,1,2], f32[1,6,1,2], i64[6]<6, i64[6]<6", Capped(Windowed(dropped)),
       -2.0, 2.0},
      {"f32[2,3,4,3], f32[2,5,2,3], f32[2,5,2,3], i64[3]<5, i64[5]<5", OverAll(plain), -2.0, 2.0},
      {"f32[1,4,2,2], f32[1,4,2,2], f32[1,4,2,2], i64[4]<4, i64[4]<4", OverAll(dropped)}};
  return op;
}

OpDef SegmentAttention() {
  const Attrs plain = PlainAttention();
  const Attrs dropped = DroppedAttention();
  OpDef op = InSegments(
      Attention(), "b s (k g) d!, b (k g) s",
      {{"f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], i64[4]<5, i64[4]<5, i64[2,4]<2, i64[2,4]<2",
        plain, -2.0, 2.0},
       {"f32[2,3,4,3], f32[2,5,2,3], f32[2,5,2,3], i64[3]<5, i64[5]<5, i64[2,3]<2, i64[2,5]<2",
        OverAll(plain), -2.0, 2.0},
       {"f32[2,6,2,2], f32[2,6,1,2], f32[2,6,1,2], i64[6]<6, i64[6]<6, i64[2,6]<3, i64[2,6]<3",
        Capped(OverAll(dropped)), -2.0, 2.0},
       {"f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1]<1, i64[1]<1, i64[1,1]<1, i64[1,1]<1",
        plain}});
  op.doc =
      "Attention among elements of one segment: of the keys that `attention` sees, those with "
      "kseg[b,t] = qseg[b,s]. Padding is a segment of its own.";
  op.grad = [](GradContext& c) { return AttentionDerivative(c, /*segments=*/true); };
  return op;
}

}  // namespace

std::vector<OpDef> AttentionOps() {
  std::vector<OpDef> ops = AttentionGradOps();
  ops.push_back(Attention());
  ops.push_back(SegmentAttention());
  return ops;
}

}  // namespace mgc
