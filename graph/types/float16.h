// Real numbers of 16 bits as in IEEE 754: 5 bits of exponent and 11 bits of precision, so
// magnitudes up to 65504 and, with fewer bits, down to 2^-24. A type for storage only: arithmetic
// is done in f32.

#ifndef MGC_GRAPH_TYPES_FLOAT16_H_
#define MGC_GRAPH_TYPES_FLOAT16_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mgc {

// Trivial, so that arrays of it are plain memory. Compares by ToFloat, as the numbers do, or by
// `bits`.
struct Float16 {
  uint16_t bits;  // sign, 5 of exponent, 10 of mantissa
};

static_assert(sizeof(Float16) == 2 && std::is_trivial_v<Float16>);

// Exact for every value, denormals included. NaN becomes quiet and keeps its sign and payload.
inline float ToFloat(Float16 x) {
  constexpr uint32_t kQuietNan = 0x7fc00000;
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  uint32_t bits = magnitude << 13;
  if (magnitude > 0x7c00) {
    bits |= kQuietNan;
  } else if (magnitude == 0x7c00) {
    bits = 0x7f800000;
  } else if (magnitude >= 0x0400) {
    bits += (127 - 15) << 23;
  } else {
    const float denormal = static_cast<float>(magnitude) * 0x1p-24f;
    std::memcpy(&bits, &denormal, sizeof bits);
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The nearest f16, ties to the one with an even last bit; below 2^-14 they are 2^-24 apart. A
// magnitude of 65520 or more becomes infinity. NaN stays NaN, quiet, with its sign and the upper
// bits of its payload.
inline Float16 ToFloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t rounded;
  if (magnitude > 0x7f800000) {
    rounded = 0x7e00 | (magnitude >> 13 & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // 65520
    rounded = 0x7c00;
  } else if (magnitude >= 0x38800000) {  // 2^-14
    rounded = (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  } else {
    // Beside 0.5 the last bit of an f32 stands for 2^-24, so that the sum rounds as wanted.
    float sum;
    std::memcpy(&sum, &magnitude, sizeof sum);
    sum += 0.5f;
    std::memcpy(&rounded, &sum, sizeof rounded);
    rounded -= 0x3f000000;
  }
  return {static_cast<uint16_t>(sign | rounded)};
}

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_FLOAT16_H_
