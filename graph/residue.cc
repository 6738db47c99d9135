#include "graph/residue.h"

namespace mgc {

// The almost inverse of Kaliski ("The Montgomery inverse and its applications", IEEE Trans. Comp.
// 44, 1995), in which no cofactor needs reduction: with c and d those of u and v, u = c x 2^-k and
// v = -d x 2^-k modulo p (or both with the other sign), u d + v c = p and u, v are odd. What is
// left at u = v = 1, a power of two, is a rotation.
uint64_t ResidueInverse(uint64_t x) {
  int k = __builtin_ctzll(x);
  uint64_t u = x >> k;
  uint64_t v = kResiduePrime;
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
  const uint64_t inverse = ResidueRotate(c, (kResidueBits - k % kResidueBits) % kResidueBits);
  return negative != 0 ? ResidueSub(0, inverse) : inverse;
}

}  // namespace mgc
