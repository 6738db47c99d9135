// Orders of samples that are computed, not stored.

#ifndef MGC_RUNTIME_DATA_PERMUTATION_H_
#define MGC_RUNTIME_DATA_PERMUTATION_H_

#include <cstddef>
#include <cstdint>

namespace mgc {

// A permutation of [0, size) that follows from seed and stream: a Feistel network of counter-based
// random numbers (graph/base/random.h) over the least power of 4 that is not below the size, walked
// until it is back in range. Less than 4 walks on average, whatever the size.
class Permutation {
 public:
  // One of its own for each source and epoch. size from 1 to 2^62.
  struct Stream {
    size_t source;
    int64_t epoch;
  };
  Permutation(uint64_t seed, Stream stream, int64_t size);

  // index in [0, size).
  int64_t At(int64_t index) const;

 private:
  uint64_t seed_;
  uint64_t stream_;  // of the first round
  int64_t size_;
  int half_bits_ = 1;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_PERMUTATION_H_
