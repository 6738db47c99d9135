// Causal scaled dot-product attention with grouped queries; where asked, over a window (Beltagy et
// al., arXiv 2004.05150) and with bounded scores (Gemma team, arXiv 2408.00118).
//
// Written with ExpDiff, LogShift and Max only, so that blocked and rescaled forms of the same
// softmax are exactly equal to it in every scalar model. What is saved for the gradient is the
// row's logarithm of the sum of exponentials (Dao et al., arXiv 2205.14135, section 3), never the
// scores.

#include <algorithm>

#include "graph/base/random.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

bool HasCap(const Attrs& attrs) { return attrs.Find("cap") != nullptr; }
double CapOf(const Attrs& attrs) { return HasCap(attrs) ? attrs.Real("cap") : 1.0; }
// 0: none.
int64_t WindowOf(const Attrs& attrs) {
  return attrs.Find("window") != nullptr ? attrs.Int("window") : 0;
}

// One use of attention on one rank: sizes, rows and the probability of one pair.
template <class M>
class AttentionView {
 public:
  using S = typename M::Scalar;

  // The operands' places differ between attention and its gradient.
  AttentionView(const EvalContext<M>& c, int q, int k, int qpos, int kpos)
      : batch(c.in(q).dim(0)),
        queries(c.in(q).dim(1)),
        heads(c.in(q).dim(2)),
        depth(c.in(q).dim(3)),
        keys(c.in(k).dim(1)),
        kv_heads(c.in(k).dim(2)),
        c_(c),
        q_(c.in(q)),
        k_(c.in(k)),
        qpos_(c.in(qpos)),
        kpos_(c.in(kpos)),
        scale_(c.model.Constant(c.attrs.Real("scale"))),
        cap_(c.model.Constant(CapOf(c.attrs))),
        window_(WindowOf(c.attrs)),
        p_(c.attrs.Real("p")),
        stream_(StreamOf(c.attrs.Text("key"))) {}

  // First element of a query's and of a key's row; `head` is a query head.
  size_t QueryRow(int64_t b, int64_t s, int64_t head) const {
    return static_cast<size_t>(((b * queries + s) * heads + head) * depth);
  }
  size_t KeyRow(int64_t b, int64_t t, int64_t head) const {
    return static_cast<size_t>(((b * keys + t) * kv_heads + head / (heads / kv_heads)) * depth);
  }
  size_t Statistic(int64_t b, int64_t s, int64_t head) const {
    return static_cast<size_t>((b * heads + head) * queries + s);
  }

  bool Visible(int64_t s, int64_t t) const {
    const int64_t back = Back(s, t);
    return back >= 0 && (window_ == 0 || back < window_);
  }

  S Dot(const HostTensor<S>& x, size_t x_row, const HostTensor<S>& y, size_t y_row) const {
    S sum = c_.model.Constant(0);
    for (size_t i = 0; i < static_cast<size_t>(depth); ++i) {
      sum = c_.model.Add(sum, c_.model.Mul(x.real[x_row + i], y.real[y_row + i]));
    }
    return sum;
  }

  // What the softmax is taken of. A window adds a zero that tells windows apart, so that sizes at
  // which every key is inside do not make them equal.
  S Score(int64_t b, int64_t s, int64_t t, int64_t head) const {
    const M& m = c_.model;
    S score = Product(b, s, t, head);
    if (HasCap(c_.attrs)) score = m.Mul(cap_, m.Fn("tanh", {OverCap(score)}));
    if (window_ == 0) return score;
    const double window[] = {static_cast<double>(window_)};
    return m.Add(score, m.Indexed("window", window, {Back(s, t)}, [] { return 0.0; }));
  }

  // The score's derivative with respect to the dot product of query and key.
  S Slope(int64_t b, int64_t s, int64_t t, int64_t head) const {
    if (!HasCap(c_.attrs)) return scale_;
    return c_.model.Mul(scale_, c_.model.Fn("tanh_grad", {OverCap(Product(b, s, t, head))}));
  }

  // What dropout multiplies this probability by. Indices are logical: sample, head, and the places
  // of query and key in their dims. They count modulo 2^64.
  S Kept(int64_t b, int64_t s, int64_t t, int64_t head) const {
    if (p_ == 0) return c_.model.Constant(1);
    const int64_t group = c_.piece("g").room;
    const int64_t all_heads = Whole("k") * Whole("g");
    const int64_t kv_head = c_.piece("k").begin + head / group;
    const int64_t logical_head = kv_head * Whole("g") + c_.piece("g").begin + head % group;
    const uint64_t sample = static_cast<uint64_t>(c_.piece("b").begin + b);
    const uint64_t row = (sample * all_heads + logical_head) * Whole("s") + c_.piece("s").begin + s;
    const uint64_t index = row * Whole("t") + c_.piece("t").begin + t;
    return c_.model.Random(c_.seed, stream_, index, 1.0 - p_);
  }

  const int64_t batch;
  const int64_t queries;
  const int64_t heads;
  const int64_t depth;
  const int64_t keys;
  const int64_t kv_heads;

 private:
  // Positions from the query back to the key; negative for what comes later.
  int64_t Back(int64_t s, int64_t t) const {
    return qpos_.index[static_cast<size_t>(s)] - kpos_.index[static_cast<size_t>(t)];
  }

  S Product(int64_t b, int64_t s, int64_t t, int64_t head) const {
    return c_.model.Mul(scale_, Dot(q_, QueryRow(b, s, head), k_, KeyRow(b, t, head)));
  }
  S OverCap(const S& score) const { return c_.model.Mul(score, c_.model.Inv(cap_)); }

  int64_t Whole(absl::string_view factor) const {
    return c_.rule.factors[static_cast<size_t>(c_.rule.Find(factor))].size;
  }

  const EvalContext<M>& c_;
  const HostTensor<S>& q_;
  const HostTensor<S>& k_;
  const HostTensor<S>& qpos_;
  const HostTensor<S>& kpos_;
  const S scale_;
  const S cap_;
  const int64_t window_;
  const double p_;
  const uint64_t stream_;
};

// Calls fn(b, s, head) for every query row.
template <class M, class F>
void ForEachRow(const AttentionView<M>& view, F fn) {
  for (int64_t b = 0; b < view.batch; ++b) {
    for (int64_t s = 0; s < view.queries; ++s) {
      for (int64_t head = 0; head < view.heads; ++head) fn(b, s, head);
    }
  }
}

// to[to_row ..] += factor * from[from_row ..] over one row.
template <class M>
void AddRow(const M& m, const typename M::Scalar& factor,
            const HostTensor<typename M::Scalar>& from, size_t from_row,
            HostTensor<typename M::Scalar>* to, size_t to_row, int64_t depth) {
  for (size_t i = 0; i < static_cast<size_t>(depth); ++i) {
    to->real[to_row + i] = m.Add(to->real[to_row + i], m.Mul(factor, from.real[from_row + i]));
  }
}

struct EvalAttention {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const AttentionView<M> view(c, 0, 1, 3, 4);
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

absl::Status CheckAttention(absl::string_view op, const OpUse& use) {
  const double p = use.attrs.Real("p");
  if (!(p >= 0 && p < 1)) return Refuse(op, 1, "p must lie in [0, 1)");
  if (use.attrs.Find("window") != nullptr && WindowOf(use.attrs) < 1) {
    return Refuse(op, 3, "a window has at least one key; without one there is no attribute");
  }
  if (!(CapOf(use.attrs) > 0)) return Refuse(op, 4, "cap must be positive");
  return absl::OkStatus();
}

std::vector<AttrSpec> AttentionAttrs() {
  return {{"scale", AttrKind::kReal},
          {kDropAttr, AttrKind::kReal},
          {kRandomKeyAttr, AttrKind::kText},
          {"window", AttrKind::kInt, false},
          {"cap", AttrKind::kReal, false}};
}

absl::Status AttentionDerivative(GradContext& c) {
  if (c.output_grad(1) != kNone) {
    return Refuse("attention", 2, "the saved statistic lse has no gradient");
  }
  const ValueId dy = c.output_grad(0);
  if (dy == kNone || !(c.wants(0) || c.wants(1) || c.wants(2))) return absl::OkStatus();
  const std::vector<ValueId> made = c.EmitAll(
      "attention_grad",
      {dy, c.input(0), c.input(1), c.input(2), c.output(0), c.output(1), c.input(3), c.input(4)},
      c.attrs());
  for (int i = 0; i < 3; ++i) {
    if (c.wants(i)) c.Add(i, made[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

// Tokens and depth of one head, larger than any tile of them that is packed.
struct HeadSizes {
  int64_t tokens;
  int64_t depth;
};

HeadSizes HeadSizesOf(const TensorType& q, const TensorType& k) {
  const auto size = [](const TensorType& type, size_t d) {
    constexpr int64_t kRounding = 32;
    constexpr int64_t kMost = int64_t{1} << 26;  // damaged sizes stay in range
    return kRounding + (d < type.dims.size() ? std::min(type.dims[d].size, kMost) : 0);
  };
  return {std::max(size(q, 1), size(k, 1)), size(q, 3)};
}

// Keys and values of one head, packed; 64 rows of queries, results and scores.
int64_t AttentionWorkspace(const OpUse& use) {
  const HeadSizes head = HeadSizesOf(*use.operands[0], *use.operands[1]);
  const int64_t row = 2 * head.depth + 128;
  return (2 * head.tokens * head.depth + 64 * row) * SizeOf(use.operands[0]->dtype);
}

// Queries and gradients of one head's results, each packed both ways; 128 rows of keys, values,
// their gradients and scores.
int64_t AttentionGradWorkspace(const OpUse& use) {
  const HeadSizes head = HeadSizesOf(*use.operands[1], *use.operands[2]);
  const int64_t row = 4 * head.depth + 128;
  return (4 * head.tokens * head.depth + 128 * row) * SizeOf(use.operands[1]->dtype);
}

// Pairs of query and key that are visible, with the queries the last of the keys: the rank with the
// end of a sequence that is cut over ranks has most of them, and all others wait for it.
//
double VisiblePairs(double queries, double keys, double window) {
  const double rows = std::min(queries, keys);
  const double full = std::min(std::max(keys - window, 0.0), rows);  // rows that fill the window
  // The others see keys - rows + 1, ..., keys - full.
  return full * window + (rows - full) * (2 * keys - rows - full + 1) / 2;
}

// `products` products along the depth for every visible pair.
double AttentionFlops(const OpUse& use, const TensorType& q, const TensorType& k, double products) {
  if (q.ndim() != 4 || k.ndim() != 4) return 0;  // of a damaged plan
  const auto size = [](const TensorType& type, size_t d) {
    return static_cast<double>(type.dims[d].size);
  };
  const double keys = size(k, 1);
  const int64_t window = WindowOf(use.attrs);
  const double pairs =
      VisiblePairs(size(q, 1), keys, window > 0 ? static_cast<double>(window) : keys);
  return 2 * products * size(q, 0) * size(q, 2) * size(q, 3) * pairs;
}

Attrs Windowed(Attrs attrs) {
  attrs.Set("window", int64_t{3});
  return attrs;
}
Attrs Capped(Attrs attrs) {
  attrs.Set("cap", 1.5);
  return attrs;
}

OpDef Attention() {
  OpDef op;
  op.name = "attention";
  op.doc =
      "Causal attention of q[b,s,h,d] over k, v[b,t,kv,d] (key visible iff kpos <= qpos, and with "
      "a "
      "window iff qpos - kpos < window; query head h reads kv head h / (H / KV); with a cap, "
      "scores "
      "are cap * tanh(score / cap)), with lse[b,h,s].";
  op.operands = {"q", "k", "v", "qpos", "kpos"};
  op.results = {"o", "lse"};
  op.attrs = AttentionAttrs();
  op.roles = {OpRole::kRandom, OpRole::kRecompute};
  op.index_operands = {3, 4};
  op.check = [](const OpUse& use) { return CheckAttention("attention", use); };
  op.rule = "b s (k g) d!, b t! k d!, b t! k d!, s, t! -> b s (k g) d!, b (k g) s";
  op.offset_factors = {"b", "k", "g", "s", "t"};
  op.grad = AttentionDerivative;
  op.saved_results = 1;
  op.flops = [](const OpUse& use) {
    return AttentionFlops(use, *use.operands[0], *use.operands[1], 2);
  };
  op.workspace = AttentionWorkspace;
  op.eval = EvalWith<EvalAttention>();
  const Attrs plain = {{"scale", 0.5}, {"p", 0.0}, {"key", ""}};
  const Attrs dropped = {{"scale", 0.7}, {"p", 0.3}, {"key", "layers.1.attention"}};
  op.cases = {
      {"f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], i64[4]<5, i64[4]<5", plain, -2.0, 2.0},
      {"f32[2,2,2,2], f32[2,5,2,2], f32[2,5,2,2], i64[2]<5, i64[5]<3", dropped},
      {"f32[1,4,4,2], f32[1,4,1,2], f32[1,4,1,2], i64[4]<4, i64[4]<4", dropped, -2.0, 2.0},
      {"f32[1,1,1,1], f32[1,1,1,1], f32[1,1,1,1], i64[1]<1, i64[1]<1", plain},
      {"f32[2,5,4,3], f32[2,6,2,3], f32[2,6,2,3], i64[5]<7, i64[6]<6", Windowed(plain), -2.0, 2.0},
      {"f32[1,6,2,2], f32[1,6,1,2], f32[1,6,1,2], i64[6]<6, i64[6]<6", Windowed(dropped)},
      {"f32[2,4,4,3], f32[2,4,2,3], f32[2,4,2,3], i64[4]<5, i64[4]<5", Capped(plain), -3.0, 3.0},
      {"f32[1,6,2,2], f32[1,6,1,2], f32[1,6,1,2], i64[6]<6, i64[6]<6", Capped(Windowed(dropped)),
       -2.0, 2.0}};
  return op;
}

// With P the probabilities before dropout, K what dropout multiplies by and D = dy . o of the row:
// dv += P K dy, dS = slope P (K (dy . v) - D), dq = dS k, dk = dS q; the slope is that of the
// score.
struct EvalAttentionGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const AttentionView<M> view(c, 1, 2, 6, 7);
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
  op.eval = EvalWith<EvalAttentionGrad>();
  const Attrs plain = {{"scale", 0.5}, {"p", 0.0}, {"key", ""}};
  const Attrs dropped = {{"scale", 0.7}, {"p", 0.3}, {"key", "layers.1.attention"}};
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
               Capped(Windowed(dropped)), -2.0, 2.0}};
  return op;
}

}  // namespace

std::vector<OpDef> AttentionOps() { return {Attention(), AttentionGrad()}; }

}  // namespace mgc
