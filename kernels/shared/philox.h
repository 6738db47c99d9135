// The generator behind graph/base/random.h as a function for host and device code: Philox4x32-10
// (Salmon, Moraes, Dror, Shaw, SC 2011), whose counter holds the block's number and the stream and
// whose key is the seed. Element `index` of a stream is word index % 4 of block index / 4.

#ifndef MGC_KERNELS_SHARED_PHILOX_H_
#define MGC_KERNELS_SHARED_PHILOX_H_

#include <cstdint>

namespace mgc {

struct PhiloxWords {
  uint32_t word[4];
};

constexpr PhiloxWords Philox(uint64_t seed, uint64_t stream, uint64_t block) {
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

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_PHILOX_H_
