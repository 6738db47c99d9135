#include "kernels/cpu/attention/attention.h"

#include <algorithm>
#include <limits>

#include "graph/base/random.h"
#include "graph/types/bfloat16.h"
#include "gtest/gtest.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

struct Case {
  AttentionShape shape;
  AttentionDropout dropout;
  std::vector<int64_t> query_positions, key_positions;
  std::vector<int64_t> query_segments, key_segments;  // empty: none
  std::vector<float> q, k, v, d_o;

  AttentionPositions positions() const {
    AttentionPositions all = {query_positions.data(), key_positions.data()};
    if (query_segments.empty()) return all;
    all.query_segments = query_segments.data();
    all.key_segments = key_segments.data();
    return all;
  }
  int64_t q_size() const { return shape.batch * shape.queries * shape.heads * shape.dim; }
  int64_t kv_size() const { return shape.batch * shape.keys * shape.kv_heads * shape.dim; }
  int64_t rows() const { return shape.batch * shape.queries * shape.heads; }
};

Case Make(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads,
          int64_t dim, double p) {
  Case c;
  c.shape = {batch, queries, keys, heads, kv_heads, dim, 0.7f};
  const auto square = static_cast<uint64_t>(queries * keys);
  c.dropout.p = p;
  c.dropout.stream = {11, 22};
  c.dropout.base = 5;
  c.dropout.batch = heads * square + 3;
  c.dropout.kv_head = heads / kv_heads * square + 70;
  c.dropout.head = square;
  c.dropout.query = static_cast<uint64_t>(keys);
  for (int64_t i = 0; i < queries; ++i) c.query_positions.push_back(keys - queries + i);
  for (int64_t j = 0; j < keys; ++j) c.key_positions.push_back(j);
  c.q = Uniform(c.q_size(), 1);
  c.k = Uniform(c.kv_size(), 2);
  c.v = Uniform(c.kv_size(), 3);
  c.d_o = Uniform(c.q_size(), 4);
  return c;
}

size_t QAt(const AttentionShape& s, int64_t b, int64_t i, int64_t h) {
  return static_cast<size_t>(((b * s.queries + i) * s.heads + h) * s.dim);
}
size_t KvAt(const AttentionShape& s, int64_t b, int64_t j, int64_t h) {
  return static_cast<size_t>(((b * s.keys + j) * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim);
}

double Dot(const float* x, const float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{x[i]} * y[i];
  return sum;
}

struct Result {
  std::vector<double> o, lse, d_q, d_k, d_v;
};

// One query of one head, from the definition: probabilities p, kept(j) from dropout, then the chain
// rule.
void NaiveQuery(const Case& c, int64_t b, int64_t i, int64_t h, Result* r) {
  const AttentionShape& s = c.shape;
  const size_t q = QAt(s, b, i, h);
  std::vector<double> score(static_cast<size_t>(s.keys)), kept(score.size(), 1), d_p(score.size());
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < s.keys; ++j) {
    const size_t at = static_cast<size_t>(j);
    score[at] = s.scale * Dot(&c.q[q], &c.k[KvAt(s, b, j, h)], s.dim);
    if (s.cap != 0) score[at] = s.cap * std::tanh(score[at] / s.cap);
    const int64_t back = c.query_positions[static_cast<size_t>(i)] - c.key_positions[at];
    const bool near = !s.causal || (back >= 0 && (s.window == 0 || back < s.window));
    const bool together =
        c.query_segments.empty() || c.query_segments[static_cast<size_t>(b * s.queries + i)] ==
                                        c.key_segments[static_cast<size_t>(b * s.keys + j)];
    if (!(near && together)) score[at] = -std::numeric_limits<double>::infinity();
    max = std::max(max, score[at]);
    const int64_t group = s.heads / s.kv_heads;
    const uint64_t index = c.dropout.base + b * c.dropout.batch + h / group * c.dropout.kv_head +
                           h % group * c.dropout.head + i * c.dropout.query + j;
    const bool keep = KeepBit(c.dropout.stream.seed, c.dropout.stream.stream, index, c.dropout.p);
    kept[at] = keep ? 1 / (1 - c.dropout.p) : 0;
  }
  r->lse[static_cast<size_t>((b * s.heads + h) * s.queries + i)] = max;
  if (std::isinf(max)) return;
  double sum = 0;
  for (double x : score) sum += std::exp(x - max);
  const double log_sum = max + std::log(sum);
  r->lse[static_cast<size_t>((b * s.heads + h) * s.queries + i)] = log_sum;
  double delta = 0;
  for (int64_t j = 0; j < s.keys; ++j) {
    const size_t at = static_cast<size_t>(j), kv = KvAt(s, b, j, h);
    const double p = std::exp(score[at] - log_sum);
    d_p[at] = kept[at] * Dot(&c.d_o[q], &c.v[kv], s.dim);
    delta += p * d_p[at];
    for (size_t d = 0; d < static_cast<size_t>(s.dim); ++d) {
      r->o[q + d] += p * kept[at] * c.v[kv + d];
      r->d_v[kv + d] += p * kept[at] * c.d_o[q + d];
    }
  }
  for (int64_t j = 0; j < s.keys; ++j) {
    const size_t at = static_cast<size_t>(j), kv = KvAt(s, b, j, h);
    const bool hidden = std::isinf(score[at]);
    const double bend = s.cap == 0 || hidden ? 1 : 1 - std::pow(score[at] / s.cap, 2);
    const double d_s = std::exp(score[at] - log_sum) * (d_p[at] - delta) * s.scale * bend;
    for (size_t d = 0; d < static_cast<size_t>(s.dim); ++d) {
      r->d_q[q + d] += d_s * c.k[kv + d];
      r->d_k[kv + d] += d_s * c.q[q + d];
    }
  }
}

Result Naive(const Case& c) {
  Result r;
  r.o.resize(static_cast<size_t>(c.q_size()));
  r.d_q = r.o;
  r.lse.resize(static_cast<size_t>(c.rows()));
  r.d_k.resize(static_cast<size_t>(c.kv_size()));
  r.d_v = r.d_k;
  for (int64_t b = 0; b < c.shape.batch; ++b) {
    for (int64_t h = 0; h < c.shape.heads; ++h) {
      for (int64_t i = 0; i < c.shape.queries; ++i) NaiveQuery(c, b, i, h, &r);
    }
  }
  return r;
}

// o, then lse.
std::vector<float> Forward(Parallel& parallel, const Case& c) {
  Guarded o(c.q_size()), lse(c.rows());
  Guarded work(AttentionWorkspaceFloats(c.shape, parallel.width()));
  Attention(parallel, c.shape, c.dropout, c.positions(), c.q.data(), c.k.data(), c.v.data(),
            o.data(), lse.data(), work.data());
  work.Take();
  return Joined({o.Take(), lse.Take()});
}

// d_q, d_k, d_v.
std::vector<float> Backward(Parallel& parallel, const Case& c, const std::vector<float>& forward) {
  Guarded d_q(c.q_size()), d_k(c.kv_size()), d_v(c.kv_size());
  Guarded work(AttentionGradWorkspaceFloats(c.shape, parallel.width()));
  AttentionGrad(parallel, c.shape, c.dropout, c.positions(), c.d_o.data(), c.q.data(), c.k.data(),
                c.v.data(), forward.data(), forward.data() + c.q_size(), d_q.data(), d_k.data(),
                d_v.data(), work.data());
  work.Take();
  return Joined({d_q.Take(), d_k.Take(), d_v.Take()});
}

std::vector<float> Part(const std::vector<float>& x, int64_t begin, int64_t size) {
  return std::vector<float>(x.begin() + begin, x.begin() + begin + size);
}

void Check(const Case& c) {
  const std::vector<float> forward =
      OverWidths([&](Parallel& parallel) { return Forward(parallel, c); });
  const std::vector<float> backward =
      OverWidths([&](Parallel& parallel) { return Backward(parallel, c, forward); });
  const Result expected = Naive(c);
  ExpectClose(Part(forward, 0, c.q_size()), expected.o, 2e-6);
  const std::vector<float> lse = Part(forward, c.q_size(), c.rows());
  for (size_t i = 0; i < lse.size(); ++i) {
    if (std::isinf(expected.lse[i])) {
      EXPECT_EQ(lse[i], -std::numeric_limits<float>::infinity());
    } else {
      EXPECT_NEAR(lse[i], expected.lse[i], 4e-6);
    }
  }
  ExpectClose(Part(backward, 0, c.q_size()), expected.d_q, 4e-6);
  ExpectClose(Part(backward, c.q_size(), c.kv_size()), expected.d_k, 4e-6);
  ExpectClose(Part(backward, c.q_size() + c.kv_size(), c.kv_size()), expected.d_v, 4e-6);
}

TEST(Attention, Sizes) {
  Check(Make(1, 1, 1, 1, 1, 1, 0));
  Check(Make(2, 5, 5, 3, 3, 8, 0));
  Check(Make(1, 49, 49, 2, 2, 17, 0));
  Check(Make(1, 97, 97, 1, 1, 33, 0));
  Check(Make(2, 200, 200, 2, 2, 64, 0));
}

template <class T>
std::vector<T> Rounded(const std::vector<float>& x) {
  std::vector<T> rounded(x.size());
  for (size_t i = 0; i < x.size(); ++i) Put(x[i], &rounded[i]);
  return rounded;
}

template <class T>
std::vector<float> Widened(const std::vector<T>& x) {
  std::vector<float> wide;
  wide.reserve(x.size());
  for (const T v : x) wide.push_back(ToFloat(v));
  return wide;
}

// The same of elements of T, whose last place is worth `unit` of 1. Some results are rounded again
// on the way: probabilities, and o for backward.
template <class T>
void CheckNarrow(Case c, double unit) {
  const std::vector<T> q = Rounded<T>(c.q), k = Rounded<T>(c.k), v = Rounded<T>(c.v),
                       d_o = Rounded<T>(c.d_o);
  c.q = Widened(q);
  c.k = Widened(k);
  c.v = Widened(v);
  c.d_o = Widened(d_o);
  std::vector<T> o(q.size()), d_q(q.size()), d_k(k.size()), d_v(k.size());
  std::vector<float> lse(static_cast<size_t>(c.rows()));
  SerialParallel serial;
  Guarded work(AttentionWorkspaceFloats(c.shape, 1));
  Attention(serial, c.shape, c.dropout, c.positions(), q.data(), k.data(), v.data(), o.data(),
            lse.data(), work.data());
  work.Take();
  Guarded grad_work(NarrowAttentionGradWorkspaceFloats(c.shape, 1));
  AttentionGrad(serial, c.shape, c.dropout, c.positions(), d_o.data(), q.data(), k.data(), v.data(),
                o.data(), lse.data(), d_q.data(), d_k.data(), d_v.data(), grad_work.data());
  grad_work.Take();
  const Result expected = Naive(c);
  ExpectClose(Widened(o), expected.o, unit);
  ExpectClose(Widened(d_q), expected.d_q, 2 * unit);
  ExpectClose(Widened(d_k), expected.d_k, 2 * unit);
  ExpectClose(Widened(d_v), expected.d_v, unit);
}

// Sizes that leave half a pair at the end of a row, of a tile and of all keys.
TEST(Attention, PairsOfBf16) {
  CheckNarrow<Bfloat16>(Make(1, 1, 1, 1, 1, 1, 0), 0x1p-7);
  CheckNarrow<Bfloat16>(Make(2, 49, 49, 2, 1, 17, 0), 0x1p-7);
  CheckNarrow<Bfloat16>(Make(1, 97, 97, 1, 1, 33, 0.1), 0x1p-7);
  CheckNarrow<Bfloat16>(Make(1, 60, 231, 2, 2, 16, 0), 0x1p-7);
  CheckNarrow<Bfloat16>(Make(1, 200, 200, 2, 2, 64, 0.1), 0x1p-7);
}

TEST(Attention, ElementsOfF16) {
  CheckNarrow<Float16>(Make(1, 1, 1, 1, 1, 1, 0), 0x1p-10);
  CheckNarrow<Float16>(Make(2, 49, 49, 2, 1, 17, 0), 0x1p-10);
  CheckNarrow<Float16>(Make(1, 97, 97, 1, 1, 33, 0.1), 0x1p-10);
  CheckNarrow<Float16>(Make(1, 60, 231, 2, 2, 16, 0), 0x1p-10);
  CheckNarrow<Float16>(Make(1, 200, 200, 2, 2, 64, 0.1), 0x1p-10);
}

TEST(Attention, FewerQueriesThanKeys) {
  Check(Make(1, 60, 230, 2, 2, 16, 0));
  Check(Make(2, 1, 130, 2, 2, 16, 0));
}

TEST(Attention, GroupedQueries) {
  Check(Make(2, 50, 50, 4, 2, 8, 0));
  Check(Make(1, 110, 110, 6, 1, 24, 0));
}

TEST(Attention, Dropout) {
  Check(Make(2, 50, 50, 4, 2, 8, 0.1));
  Check(Make(1, 197, 197, 2, 2, 16, 0.5));
}

// Positions of a sequence cut and put together in another order, as context parallelism's zigzag
// does.
TEST(Attention, PositionsInAnyOrder) {
  Case c = Make(1, 120, 250, 2, 1, 16, 0.1);
  for (size_t j = 0; j < c.key_positions.size(); ++j) {
    c.key_positions[j] =
        j < 125 ? 2 * static_cast<int64_t>(j) + 1 : 498 - 2 * static_cast<int64_t>(j);
  }
  for (size_t i = 0; i < c.query_positions.size(); ++i) {
    c.query_positions[i] = static_cast<int64_t>(i * 77 % 251);
  }
  Check(c);
}

Case Windowed(Case c, int64_t window) {
  c.shape.window = window;
  return c;
}

TEST(Attention, Windows) {
  for (int64_t window : {2, 31, 48, 96, 130, 1000}) {
    Check(Windowed(Make(1, 300, 300, 2, 1, 16, 0), window));
    Check(Windowed(Make(2, 60, 230, 2, 2, 8, 0.1), window));
  }
  Case c = Windowed(Make(1, 120, 250, 2, 1, 16, 0.1), 40);
  for (size_t j = 0; j < c.key_positions.size(); ++j) {
    c.key_positions[j] = static_cast<int64_t>(j * 91 % 250);
  }
  Check(c);
}

// Tiles outside of the window are skipped; what they hold is not even read into a product.
TEST(Attention, NothingComesFromBeyondTheWindow) {
  Case c = Windowed(Make(1, 400, 400, 1, 1, 8, 0), 10);
  for (size_t i = 0; i < size_t{96} * 8; ++i) c.k[i] = c.v[i] = std::nanf("");
  SerialParallel serial;
  const std::vector<float> forward = Forward(serial, c);
  for (int64_t i = 192; i < 400; ++i) EXPECT_FALSE(std::isnan(forward[static_cast<size_t>(i * 8)]));
}

TEST(Attention, CappedScores) {
  for (float cap : {0.5f, 3.0f, 50.0f}) {
    for (int64_t window : {0, 50}) {
      Case c = Windowed(Make(2, 130, 130, 4, 2, 16, window == 0 ? 0 : 0.1), window);
      for (float& x : c.q) x *= 3;
      c.shape.cap = cap;
      Check(c);
    }
  }
}

Case OverAll(Case c) {
  c.shape.causal = false;
  return c;
}

TEST(Attention, AllKeys) {
  Check(OverAll(Make(2, 5, 5, 3, 3, 8, 0)));
  Check(OverAll(Make(1, 130, 60, 4, 2, 16, 0.1)));
  Check(OverAll(Make(2, 49, 200, 2, 1, 17, 0)));
}

// Segments of uneven lengths, another cut in each sample; the last one is in keys only.
Case Segmented(Case c) {
  const auto segment = [](int64_t b, int64_t i) { return (i + 20 * b) / 37; };
  for (int64_t b = 0; b < c.shape.batch; ++b) {
    for (int64_t i = 0; i < c.shape.queries; ++i) c.query_segments.push_back(segment(b, i) % 3);
    for (int64_t j = 0; j < c.shape.keys; ++j) c.key_segments.push_back(segment(b, j) % 4);
  }
  return c;
}

TEST(Attention, Segments) {
  Check(Segmented(Make(3, 150, 150, 2, 2, 16, 0)));
  Check(Segmented(OverAll(Make(2, 150, 230, 4, 2, 8, 0.1))));
  Check(Segmented(Windowed(Make(2, 300, 300, 2, 1, 8, 0), 40)));
  Case capped = Segmented(OverAll(Make(2, 130, 130, 2, 2, 16, 0)));
  capped.shape.cap = 0.5f;
  Check(capped);
}

// A query whose segment no key has sees nothing.
TEST(Attention, SegmentsWithoutKeys) {
  Case c = Segmented(OverAll(Make(2, 100, 100, 1, 1, 8, 0)));
  for (size_t i = 0; i < c.query_segments.size(); i += 3) c.query_segments[i] = 9;
  Check(c);
}

// As of a cache that has room for more keys than a text has so far.
TEST(Attention, NothingComesFromBehindTheLastKeyOfASegment) {
  Case c = OverAll(Make(1, 1, 200, 2, 2, 8, 0));
  c.query_segments = {1};
  c.key_segments.assign(200, 0);
  std::fill_n(c.key_segments.begin(), 70, 1);
  SerialParallel serial;
  const std::vector<float> expected = Forward(serial, c);
  for (size_t i = KvAt(c.shape, 0, 70, 0); i < c.k.size(); ++i) c.k[i] = c.v[i] = std::nanf("");
  EXPECT_TRUE(SameBits(Forward(serial, c), expected));
}

TEST(Attention, QueriesThatSeeNothing) {
  Case c = Make(1, 100, 100, 1, 1, 8, 0);
  for (size_t i = 0; i < 100; i += 3) c.query_positions[i] = -1;
  Check(c);
  for (int64_t& position : c.query_positions) position = -1;
  Check(c);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Case c = Make(1, 130, 130, 1, 1, 16, 0);
  for (float& x : c.q) x *= 40;
  for (float& x : c.k) x *= 40;
  const std::vector<float> forward =
      OverWidths([&](Parallel& parallel) { return Forward(parallel, c); });
  // Scores reach thousands: their rounding errors (1e-7 of them) are errors of the probabilities.
  ExpectClose(Part(forward, 0, c.q_size()), Naive(c).o, 2e-3);
}

TEST(Attention, NanIsNotLost) {
  Case c = Make(1, 100, 100, 1, 1, 8, 0);
  c.q[0] = std::nanf("");
  c.q[static_cast<size_t>(99 * 8)] = std::nanf("");
  SerialParallel serial;
  const std::vector<float> forward = Forward(serial, c);
  EXPECT_TRUE(std::isnan(forward[0]));
  EXPECT_FALSE(std::isnan(forward[8]));
  EXPECT_TRUE(std::isnan(forward[static_cast<size_t>(99 * 8)]));
}

void ExpectRowsAlone(const Case& whole) {
  SerialParallel serial;
  const std::vector<float> all = Forward(serial, whole);
  const std::vector<float> gradients = Backward(serial, whole, all);
  for (int64_t first : {1, 48, 77}) {
    Case part = whole;
    part.shape.queries = 150 - first;
    const int64_t at = first * 2 * 16;
    part.q = Part(whole.q, at, part.q_size());
    part.d_o = Part(whole.d_o, at, part.q_size());
    part.dropout.base += first * part.dropout.query;
    part.query_positions.erase(part.query_positions.begin(), part.query_positions.begin() + first);
    const std::vector<float> some = Forward(serial, part);
    EXPECT_TRUE(SameBits(Part(some, 0, part.q_size()), Part(all, at, part.q_size())));
    EXPECT_TRUE(SameBits(Part(Backward(serial, part, some), 0, part.q_size()),
                         Part(gradients, at, part.q_size())));
  }
}

// Queries computed in two calls have the bits they have in one.
TEST(Attention, RowsDoNotDependOnOtherRows) {
  ExpectRowsAlone(Make(1, 150, 150, 2, 2, 16, 0.1));
  ExpectRowsAlone(Windowed(Make(1, 150, 150, 2, 2, 16, 0.1), 37));
}

}  // namespace
}  // namespace mgc::cpu
