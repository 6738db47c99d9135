// Random numbers of graph/base/random.h in device code.

#ifndef MGC_KERNELS_CUDA_DEVICE_PHILOX_H_
#define MGC_KERNELS_CUDA_DEVICE_PHILOX_H_

#include <cstdint>

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

struct PhiloxBlock {
  uint32_t word[4];
};

// The elements 4·block, ..., 4·block + 3 of a stream: Philox4x32-10.
__device__ inline PhiloxBlock Philox(uint64_t seed, uint64_t stream, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0;
    const uint64_t b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

__device__ inline uint32_t RandomWord(const PhiloxBlock& block, uint64_t index) {
  const uint32_t low = (index & 1) != 0 ? block.word[1] : block.word[0];
  const uint32_t high = (index & 1) != 0 ? block.word[3] : block.word[2];
  return (index & 2) != 0 ? high : low;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_PHILOX_H_
