// The generator behind graph/base/random.h, for host and device code: Philox4x32-10 (Salmon,
// Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The key is the seed,
// the counter holds the block's number in its low and the stream in its high 64 bits. No includes
// beyond the standard's: device code takes it too.

#ifndef MGC_GRAPH_BASE_PHILOX_H_
#define MGC_GRAPH_BASE_PHILOX_H_

#include <cstdint>

namespace mgc {

// Elements 4 · block, ..., 4 · block + 3 of a stream.
struct PhiloxBlock {
  uint32_t word[4];
};

constexpr PhiloxBlock Philox(uint64_t seed, uint64_t stream, uint64_t block) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  auto c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  auto c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{kMultiplier0} * c0;
    const uint64_t b = uint64_t{kMultiplier1} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(a);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// Element `index`, of its block. Chosen by comparisons: device code keeps blocks in registers.
constexpr uint32_t RandomWord(const PhiloxBlock& block, uint64_t index) {
  const uint32_t low = (index & 1) != 0 ? block.word[1] : block.word[0];
  const uint32_t high = (index & 1) != 0 ? block.word[3] : block.word[2];
  return (index & 2) != 0 ? high : low;
}

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_PHILOX_H_
