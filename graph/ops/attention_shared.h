// What attention and its gradient share: the meaning of a score, and what their registrations have
// in common. For attention.cc, attention_grad.cc and attention_shared.cc only.

#ifndef MGC_GRAPH_OPS_ATTENTION_SHARED_H_
#define MGC_GRAPH_OPS_ATTENTION_SHARED_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/random.h"
#include "graph/ir/op.h"

namespace mgc {

inline bool HasCap(const Attrs& attrs) { return attrs.Find("cap") != nullptr; }
inline double CapOf(const Attrs& attrs) { return HasCap(attrs) ? attrs.Real("cap") : 1.0; }
// 0: none.
inline int64_t WindowOf(const Attrs& attrs) {
  return attrs.Find("window") != nullptr ? attrs.Int("window") : 0;
}
inline bool IsCausal(const Attrs& attrs) {
  return attrs.Find("causal") == nullptr || attrs.Int("causal") != 0;
}

// AttentionPlaces of operands, which differ between attention and its gradient. Segments, where
// there are any, stand behind the positions, queries' first.
struct AttentionPlaces {
  int q, k, v, positions;
};
inline constexpr AttentionPlaces kAttentionPlaces = {0, 1, 2, 3};
inline constexpr AttentionPlaces kAttentionGradPlaces = {1, 2, 3, 6};

// One use of attention on one rank: sizes, rows and the probability of one pair.
template <class M>
class AttentionView {
 public:
  using S = typename M::Scalar;

  AttentionView(const EvalContext<M>& c, const AttentionPlaces& at)
      : batch(c.in(at.q).dim(0)),
        queries(c.in(at.q).dim(1)),
        heads(c.in(at.q).dim(2)),
        depth(c.in(at.q).dim(3)),
        keys(c.in(at.k).dim(1)),
        kv_heads(c.in(at.k).dim(2)),
        c_(c),
        q_(c.in(at.q)),
        k_(c.in(at.k)),
        qpos_(c.in(at.positions)),
        kpos_(c.in(at.positions + 1)),
        segments_(c.inputs.size() > static_cast<size_t>(at.positions) + 2 ? at.positions + 2 : -1),
        causal_(IsCausal(c.attrs)),
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

  // By position. What segments hide has probability zero by its score.
  bool Visible(int64_t s, int64_t t) const {
    if (!causal_) return true;
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
    if (segments_ >= 0) score = m.Add(score, OfSegments(b, s, t));
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

  // Nothing between elements of one segment, else minus infinity. Keyed by both, so that a proof
  // tells any two pairs apart, whatever segments it draws.
  S OfSegments(int64_t b, int64_t s, int64_t t) const {
    const int64_t query = c_.in(segments_).index[static_cast<size_t>(b * queries + s)];
    const int64_t key = c_.in(segments_ + 1).index[static_cast<size_t>(b * keys + t)];
    return c_.model.Indexed("segments", {}, {query, key}, [query, key] {
      return query == key ? 0.0 : -std::numeric_limits<double>::infinity();
    });
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
  const int segments_;  // place of the queries'; -1: none
  const bool causal_;
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

absl::Status CheckAttention(absl::string_view op, const OpUse& use);
std::vector<AttrSpec> AttentionAttrs();

// Attributes of cases: without dropout and with it, and a variant of either.
Attrs PlainAttention();
Attrs DroppedAttention();
Attrs Windowed(Attrs attrs);
Attrs Capped(Attrs attrs);
Attrs OverAll(Attrs attrs);

// The name of `op` over segments, and the op with cases of its own; `results` is its rule's right
// side.
std::string SegmentName(absl::string_view op);
OpDef InSegments(OpDef op, absl::string_view results, std::vector<OpCase> cases);

// Tokens and depth of one head, larger than any tile of them that is packed.
struct HeadSizes {
  int64_t tokens;
  int64_t depth;
};
HeadSizes HeadSizesOf(const TensorType& q, const TensorType& k);

// `products` products along the depth for every pair of query and key that is visible by position.
// Segments hide more of them; how many, only the data says.
double AttentionFlops(const OpUse& use, const TensorType& q, const TensorType& k, double products);

// attention_grad and segment_attention_grad.
std::vector<OpDef> AttentionGradOps();

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_ATTENTION_SHARED_H_
