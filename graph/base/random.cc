#include "graph/base/random.h"

#include <cmath>

#include "xxhash.h"

namespace mgc {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
constexpr double kTwoTo32 = 4294967296.0;

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

uint64_t StreamOf(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

uint32_t RandomBits(uint64_t seed, uint64_t stream, uint64_t index) {
  uint32_t counter[4] = {Low(index / 4), High(index / 4), Low(stream), High(stream)};
  uint32_t key[2] = {Low(seed), High(seed)};
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{kMultiplier0} * counter[0];
    const uint64_t b = uint64_t{kMultiplier1} * counter[2];
    counter[0] = High(b) ^ counter[1] ^ key[0];
    counter[1] = Low(b);
    counter[2] = High(a) ^ counter[3] ^ key[1];
    counter[3] = Low(a);
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter[index % 4];
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
