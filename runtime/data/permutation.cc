#include "runtime/data/permutation.h"

#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr uint64_t kRounds = 6;
constexpr int kEpochBits = 48;  // epochs and rounds of a source
constexpr int kMostHalfBits = 31;

}  // namespace

Permutation::Permutation(uint64_t seed, Stream stream, int64_t size)
    : seed_(seed),
      stream_(StreamOf("order of samples") + (uint64_t{stream.source} << kEpochBits) +
              static_cast<uint64_t>(stream.epoch) * kRounds),
      size_(size) {
  while (half_bits_ < kMostHalfBits && (int64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  MGC_CHECK(size >= 1 && size <= int64_t{1} << (2 * half_bits_)) << size;
}

int64_t Permutation::At(int64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto at = static_cast<uint64_t>(index);
  do {
    uint64_t left = at >> half_bits_;
    uint64_t right = at & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (RandomBits(seed_, stream_ + round, right) & mask);
      left = right;
      right = mixed;
    }
    at = left << half_bits_ | right;
  } while (at >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(at);
}

}  // namespace mgc
