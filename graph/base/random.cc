#include "graph/base/random.h"

#include <cmath>

#include "graph/base/philox.h"
#include "xxhash.h"

namespace mgc {
namespace {

constexpr double kTwoTo32 = 4294967296.0;

}  // namespace

uint64_t StreamOf(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

uint32_t RandomBits(uint64_t seed, uint64_t stream, uint64_t index) {
  return RandomWord(Philox(seed, stream, index / 4), index);
}

double RandomUniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return RandomBits(seed, stream, index) / kTwoTo32;
}

double RandomNormal(uint64_t seed, uint64_t stream, uint64_t index) {
  constexpr double kTwoPi = 6.283185307179586;
  const double u = (RandomBits(seed, stream, 2 * index) + 1.0) / kTwoTo32;
  const double w = RandomBits(seed, stream, 2 * index + 1) / kTwoTo32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(kTwoPi * w);
}

uint64_t DropThreshold(double p_drop) {
  return static_cast<uint64_t>(std::llround(p_drop * kTwoTo32));
}

bool KeepBit(uint64_t seed, uint64_t stream, uint64_t index, double p_drop) {
  return RandomBits(seed, stream, index) >= DropThreshold(p_drop);
}

}  // namespace mgc
