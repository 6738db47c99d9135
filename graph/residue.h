// Arithmetic modulo the Mersenne prime p = 2^61 - 1, and pairs of such residues.
//
// Reference evaluation over residues is exact (graph/residue_model.h): sums and products of
// integers, quotients and dyadic fractions have one value whatever the order of operations. A
// residue is a uint64 in [0, p); every function here takes and returns such. As 2^61 = 1, a power
// of two is a rotation of 61 bits, and so every finite double is a residue.

#ifndef MGC_GRAPH_RESIDUE_H_
#define MGC_GRAPH_RESIDUE_H_

#include <cstdint>
#include <cstring>

namespace mgc {

inline constexpr int kResidueBits = 61;
inline constexpr uint64_t kResiduePrime = (uint64_t{1} << kResidueBits) - 1;

// Takes p for zero, too, in y.
inline uint64_t ResidueAdd(uint64_t x, uint64_t y) {
  const uint64_t sum = x + y;
  const uint64_t less = sum - kResiduePrime;  // wraps when sum < p
  return less < sum ? less : sum;
}

// Takes p for zero, too, in y.
inline uint64_t ResidueSub(uint64_t x, uint64_t y) {
  const uint64_t difference = x - y;  // wraps when x < y
  const uint64_t more = difference + kResiduePrime;
  return more < difference ? more : difference;
}

inline uint64_t ResidueMul(uint64_t x, uint64_t y) {
  const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
  return ResidueAdd(static_cast<uint64_t>(product) & kResiduePrime,
                    static_cast<uint64_t>(product >> kResidueBits));
}

// x times 2^bits, for bits in [0, 61).
inline uint64_t ResidueRotate(uint64_t x, int bits) {
  return ((x << bits) | (x >> (kResidueBits - bits))) & kResiduePrime;
}

// The residue of any uint64, such as a hash.
inline uint64_t ResidueReduce(uint64_t x) {
  const uint64_t folded = (x & kResiduePrime) + (x >> kResidueBits);
  return folded < kResiduePrime ? folded : folded - kResiduePrime;
}

inline uint64_t ResidueOfInt(int64_t x) {
  return x >= 0 ? ResidueReduce(static_cast<uint64_t>(x))
                : ResidueSub(0, ResidueReduce(uint64_t{0} - static_cast<uint64_t>(x)));
}

// The exact residue of a finite double: its mantissa times a power of two.
inline uint64_t ResidueOfDouble(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const int field = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint64_t mantissa = field == 0 ? fraction : fraction | uint64_t{1} << 52;
  const int exponent = (field == 0 ? 1 : field) - 1075;  // of the mantissa's last bit
  constexpr int kTurns = 1098;                           // a multiple of 61 that makes it positive
  const uint64_t size = ResidueRotate(mantissa, (exponent + kTurns) % kResidueBits);
  return bits >> 63 == 0 ? size : ResidueSub(0, size);
}

// The inverse of x; x must not be zero.
uint64_t ResidueInverse(uint64_t x);

// Two residues under componentwise arithmetic. One alone would let wrong results pass with a
// probability that adds up over a plan; functions that mix both make that of a pair its square.
struct ResiduePair {
  uint64_t a = 0;
  uint64_t b = 0;

  bool IsZero() const { return (a | b) == 0; }
};

inline bool operator==(ResiduePair x, ResiduePair y) { return ((x.a ^ y.a) | (x.b ^ y.b)) == 0; }
inline bool operator!=(ResiduePair x, ResiduePair y) { return !(x == y); }

inline ResiduePair operator+(ResiduePair x, ResiduePair y) {
  return {ResidueAdd(x.a, y.a), ResidueAdd(x.b, y.b)};
}
inline ResiduePair operator-(ResiduePair x, ResiduePair y) {
  return {ResidueSub(x.a, y.a), ResidueSub(x.b, y.b)};
}
inline ResiduePair operator*(ResiduePair x, ResiduePair y) {
  return {ResidueMul(x.a, y.a), ResidueMul(x.b, y.b)};
}

}  // namespace mgc

#endif  // MGC_GRAPH_RESIDUE_H_
