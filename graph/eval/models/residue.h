// Arithmetic modulo two primes near 2^61, and pairs of a residue of each.
//
// Reference evaluation over residues is exact (graph/eval/models/residue_model.h): sums and
// products of integers, quotients and dyadic fractions have one value whatever the order of
// operations. A residue is a uint64 below its prime; every function here takes and returns such.
//
// Two primes, because in one field a small number may have a small order: 2^61 = 1 modulo
// 2^61 - 1, so that there 61 doublings are nothing. The second prime, 2^61 - 2373, is the largest
// below 2^61 that is safe: half of it is prime too. All numbers but 0, 1 and -1 have an order of
// at least (p - 1) / 2 modulo such a prime.

#ifndef MGC_GRAPH_EVAL_MODELS_RESIDUE_H_
#define MGC_GRAPH_EVAL_MODELS_RESIDUE_H_

#include <cstdint>
#include <iosfwd>

namespace mgc {

// Modulo 2^61 - kShort; kShort is small.
template <uint64_t kShort>
class ResidueField {
 public:
  static constexpr int kBits = 61;
  static constexpr uint64_t kPrime = (uint64_t{1} << kBits) - kShort;

  // x + y may be anything below twice the prime: takes the prime for zero, too.
  static constexpr uint64_t Add(uint64_t x, uint64_t y) {
    const uint64_t sum = x + y;
    const uint64_t less = sum - kPrime;  // wraps when sum < p
    return less < sum ? less : sum;
  }
  // Takes the prime for zero, too, in y.
  static constexpr uint64_t Sub(uint64_t x, uint64_t y) {
    const uint64_t difference = x - y;  // wraps when x < y
    const uint64_t more = difference + kPrime;
    return more < difference ? more : difference;
  }
  static constexpr uint64_t Mul(uint64_t x, uint64_t y) {
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
    if constexpr (kShort == 1) return Add(Low(product), static_cast<uint64_t>(product >> kBits));
    // 2^61 = kShort, twice: of 122 bits are left 73, then 62.
    const unsigned __int128 folded =
        (product >> kBits) * static_cast<unsigned __int128>(kShort) + Low(product);
    return Add(Low(folded), static_cast<uint64_t>(folded >> kBits) * kShort);
  }
  // The residue of any word, such as a hash.
  static constexpr uint64_t Reduce(uint64_t x) { return Add(Low(x), (x >> kBits) * kShort); }
  static constexpr uint64_t OfInt(int64_t x) {
    return x >= 0 ? Reduce(static_cast<uint64_t>(x))
                  : Sub(0, Reduce(uint64_t{0} - static_cast<uint64_t>(x)));
  }
  // The exact residue of a finite double: its mantissa times a power of two.
  static uint64_t OfDouble(double x);
  // The inverse of x; x must not be zero.
  static uint64_t Inverse(uint64_t x);

 private:
  static constexpr uint64_t Low(unsigned __int128 x) {
    return static_cast<uint64_t>(x) & ((uint64_t{1} << kBits) - 1);
  }
};

using FirstField = ResidueField<1>;
using SecondField = ResidueField<2373>;
extern template class ResidueField<1>;
extern template class ResidueField<2373>;

// A residue of each field under componentwise arithmetic. One alone would let wrong results pass
// with a probability that adds up over a plan; functions that mix both make that of a pair its
// square.
struct ResiduePair {
  uint64_t a = 0;  // of FirstField
  uint64_t b = 0;  // of SecondField

  bool IsZero() const { return (a | b) == 0; }
};

inline bool operator==(ResiduePair x, ResiduePair y) { return ((x.a ^ y.a) | (x.b ^ y.b)) == 0; }
inline bool operator!=(ResiduePair x, ResiduePair y) { return !(x == y); }

inline ResiduePair operator+(ResiduePair x, ResiduePair y) {
  return {FirstField::Add(x.a, y.a), SecondField::Add(x.b, y.b)};
}
inline ResiduePair operator-(ResiduePair x, ResiduePair y) {
  return {FirstField::Sub(x.a, y.a), SecondField::Sub(x.b, y.b)};
}
inline ResiduePair operator*(ResiduePair x, ResiduePair y) {
  return {FirstField::Mul(x.a, y.a), SecondField::Mul(x.b, y.b)};
}

// `(3, 0)`: how a failed comparison of a test shows a pair.
void PrintTo(const ResiduePair& x, std::ostream* out);

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_MODELS_RESIDUE_H_
