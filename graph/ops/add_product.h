// The reference evaluation of products: einsums of two operands, whose factors say which dims lie
// along which (graph/ops/matmul.cc).

#ifndef MGC_GRAPH_OPS_ADD_PRODUCT_H_
#define MGC_GRAPH_OPS_ADD_PRODUCT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/ops/op_helpers.h"

namespace mgc {
namespace internal {

// Elements between neighbours along each factor of a dense tensor; 0 where it has no such dim.
inline std::vector<int64_t> FactorStrides(const TensorFactors& dims,
                                          const std::vector<int64_t>& shape, size_t factors) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<int64_t> by_factor(factors, 0);
  for (size_t d = 0; d < dims.size(); ++d) by_factor[dims[d][0]] = strides[d];
  return by_factor;
}

inline std::vector<int64_t> Pick(const std::vector<int64_t>& all, const std::vector<int>& which) {
  std::vector<int64_t> picked;
  picked.reserve(which.size());
  for (int f : which) picked.push_back(all[f]);
  return picked;
}

// Where the factors of a sum lie in two operands.
using Terms = std::vector<std::pair<int64_t, int64_t>>;

// In ascending order.
template <class M>
typename M::Scalar SumOfProducts(const M& model, const typename M::Scalar* row,
                                 const typename M::Scalar* column, const Terms& terms) {
  typename M::Scalar sum = model.Constant(0);
  for (const auto& [i, j] : terms) sum = model.Add(sum, model.Mul(row[i], column[j]));
  return sum;
}

// A sum of products of residues, reduced once for many of them. Residues have one sum, in whatever
// order and however it is reduced.
template <class Field>
class ProductSum {
 public:
  // A product is below 2^122, and what a reduction leaves below 2^61.
  static constexpr size_t kMostProducts = 32;

  void Add(uint64_t x, uint64_t y) { sum_ += static_cast<unsigned __int128>(x) * y; }
  // 2^61 is kShort.
  uint64_t Reduce() {
    constexpr uint64_t kLow = (uint64_t{1} << Field::kBits) - 1;
    constexpr uint64_t kShort = kLow + 1 - Field::kPrime;
    const uint64_t low = static_cast<uint64_t>(sum_) & kLow;
    const uint64_t middle = static_cast<uint64_t>(sum_ >> Field::kBits) & kLow;
    const uint64_t high = static_cast<uint64_t>(sum_ >> 2 * Field::kBits);
    const uint64_t two = Field::Add(Field::Reduce(low), Field::Mul(Field::Reduce(middle), kShort));
    const uint64_t reduced = Field::Add(two, Field::Reduce(high * kShort * kShort));
    sum_ = reduced;
    return reduced;
  }

 private:
  unsigned __int128 sum_ = 0;
};

inline ResiduePair SumOfProducts(const ResidueModel& /*model*/, const ResiduePair* row,
                                 const ResiduePair* column, const Terms& terms) {
  constexpr size_t kMost = ProductSum<FirstField>::kMostProducts;
  ProductSum<FirstField> a;
  ProductSum<SecondField> b;
  ResiduePair sum;
  for (size_t begin = 0; begin < terms.size(); begin += kMost) {
    const size_t end = std::min(begin + kMost, terms.size());
    for (size_t t = begin; t < end; ++t) {
      const ResiduePair& x = row[terms[t].first];
      const ResiduePair& y = column[terms[t].second];
      a.Add(x.a, y.a);
      b.Add(x.b, y.b);
    }
    sum = {a.Reduce(), b.Reduce()};
  }
  return sum;
}

}  // namespace internal

// Adds the product of operands `a` and `b` to result 0, sums in ascending order.
template <class M>
void AddProduct(EvalContext<M>& c, int a, int b) {
  const size_t n = c.rule.factors.size();
  std::vector<int64_t> rooms;
  std::vector<int> kept;
  std::vector<int> summed;
  for (size_t f = 0; f < n; ++f) {
    rooms.push_back(c.pieces[f].room);
    (c.rule.InResult(static_cast<int>(f), 0) ? kept : summed).push_back(static_cast<int>(f));
  }
  const auto strides_a = internal::FactorStrides(c.rule.operands[a], c.in(a).shape, n);
  const auto strides_b = internal::FactorStrides(c.rule.operands[b], c.in(b).shape, n);
  const auto strides_c = internal::FactorStrides(c.rule.results[0], c.out(0).shape, n);
  internal::Terms terms;
  for (Walk walk(internal::Pick(rooms, summed),
                 {internal::Pick(strides_a, summed), internal::Pick(strides_b, summed)});
       !walk.done(); walk.Next()) {
    terms.emplace_back(walk.offset(0), walk.offset(1));
  }
  for (Walk walk(internal::Pick(rooms, kept),
                 {internal::Pick(strides_a, kept), internal::Pick(strides_b, kept),
                  internal::Pick(strides_c, kept)});
       !walk.done(); walk.Next()) {
    const auto* row = c.in(a).real.data() + walk.offset(0);
    const auto* column = c.in(b).real.data() + walk.offset(1);
    const auto sum = internal::SumOfProducts(c.model, row, column, terms);
    auto& result = c.out(0).real[static_cast<size_t>(walk.offset(2))];
    result = c.model.Add(result, sum);
  }
}

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_ADD_PRODUCT_H_
