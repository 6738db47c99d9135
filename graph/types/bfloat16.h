// Real numbers of 16 bits: the upper half of an f32, so the range of f32 (8 bits of exponent) with
// 8 bits of precision. A type for storage only: arithmetic is done in f32.

#ifndef MGC_GRAPH_TYPES_BFLOAT16_H_
#define MGC_GRAPH_TYPES_BFLOAT16_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mgc {

// Trivial, so that arrays of it are plain memory. Compares by ToFloat, as the numbers do, or by
// `bits`.
struct Bfloat16 {
  uint16_t bits;  // sign, 8 of exponent, 7 of mantissa
};

static_assert(sizeof(Bfloat16) == 2 && std::is_trivial_v<Bfloat16>);

// Exact for every value, NaN with its payload included.
inline float ToFloat(Bfloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The nearest bf16, ties to the one with an even last bit; denormals are rounded like all others. A
// magnitude of 2^128 - 2^119 or more becomes infinity. NaN stays NaN, quiet, with its sign and the
// upper bits of its payload.
inline Bfloat16 ToBfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_BFLOAT16_H_
