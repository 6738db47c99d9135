// Orders drawn with a seed.

#ifndef MGC_KERNELS_CUDA_EMULATOR_DICE_H_
#define MGC_KERNELS_CUDA_EMULATOR_DICE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mgc::cuda::emulator {

// Splitmix64 (Steele, Lea, Flood, OOPSLA 2014): a few instructions a number.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // Less than `count`, which is less than 2^32.
  size_t Below(size_t count) { return (Next() >> 32) * count >> 32; }

  template <class T>
  void Shuffle(std::vector<T>* all) {
    for (size_t left = all->size(); left > 1; --left)
      std::swap((*all)[left - 1], (*all)[Below(left)]);
  }

 private:
  uint64_t state_;
};

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_DICE_H_
