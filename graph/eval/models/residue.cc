#include "graph/eval/models/residue.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <ostream>

namespace mgc {
namespace {

// `first` times 1, ratio, ratio^2, ... .
template <class Field, size_t kCount>
constexpr std::array<uint64_t, kCount> Powers(uint64_t first, uint64_t ratio) {
  std::array<uint64_t, kCount> powers{};
  for (uint64_t& power : powers) {
    power = first;
    first = Field::Mul(first, ratio);
  }
  return powers;
}

template <class Field>
constexpr uint64_t kHalf = (Field::kPrime + 1) / 2;

// 2^-k, for all k that an inverse leaves: at most twice the bits of the prime.
template <class Field>
constexpr std::array<uint64_t, 2 * Field::kBits + 1> kHalves =
    Powers<Field, 2 * Field::kBits + 1>(1, kHalf<Field>);

// A power of two that the last bit of a double stands for is one of 2^-1074 to 2^971: one of the
// second list, which begins with 2^-1088, times one of the first.
constexpr int kStride = 64;
constexpr int kLeastPower = -17 * kStride;
template <class Field>
constexpr std::array<uint64_t, kStride> kPowers = Powers<Field, kStride>(1, 2);
template <class Field>
constexpr std::array<uint64_t, 33> kStrides =
    Powers<Field, 33>(Powers<Field, 1 - kLeastPower>(1, kHalf<Field>).back(),
                      Powers<Field, kStride + 1>(1, 2).back());

}  // namespace

template <uint64_t kShort>
uint64_t ResidueField<kShort>::OfDouble(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  const int field = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint64_t mantissa = field == 0 ? fraction : fraction | uint64_t{1} << 52;
  const int power = (field == 0 ? 1 : field) - 1075 - kLeastPower;  // of the mantissa's last bit
  const uint64_t size =
      Mul(Mul(mantissa, kPowers<ResidueField>[static_cast<size_t>(power % kStride)]),
          kStrides<ResidueField>[static_cast<size_t>(power / kStride)]);
  return bits >> 63 == 0 ? size : Sub(0, size);
}

// The almost inverse of Kaliski ("The Montgomery inverse and its applications", IEEE Trans. Comp.
// 44, 1995), in which no cofactor needs reduction: with c and d those of u and v, u = c x 2^-k and
// v = -d x 2^-k modulo p (or both with the other sign), u d + v c = p and u, v are odd. What is
// left at u = v = 1 is a power of two.
template <uint64_t kShort>
uint64_t ResidueField<kShort>::Inverse(uint64_t x) {
  int k = __builtin_ctzll(x);
  uint64_t u = x >> k;
  uint64_t v = kPrime;
  uint64_t c = 1;
  uint64_t d = 0;
  uint64_t negative = 0;
  while (u != v) {
    const uint64_t difference = u - v;
    const int zeros = __builtin_ctzll(difference);
    // All bits where u < v; a jump would be taken every other time.
    const uint64_t less = uint64_t{0} - static_cast<uint64_t>(u < v);
    const uint64_t rest = d ^ ((c ^ d) & less);
    const uint64_t smaller = v + (difference & less);
    u = ((difference ^ less) - less) >> zeros;  // |u - v|
    v = smaller;
    c += d;
    d = rest << zeros;
    negative ^= less;
    k += zeros;
  }
  const uint64_t inverse = Mul(c, kHalves<ResidueField>[static_cast<size_t>(k)]);
  return negative != 0 ? Sub(0, inverse) : inverse;
}

template class ResidueField<1>;
template class ResidueField<2373>;

void PrintTo(const ResiduePair& x, std::ostream* out) { *out << "(" << x.a << ", " << x.b << ")"; }

}  // namespace mgc
