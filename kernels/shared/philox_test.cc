#include "kernels/shared/philox.h"

#include <random>

#include "graph/base/random.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(Philox, IsTheGeneratorOfTheReference) {
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 draw(kSeed);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t seed = draw(), stream = draw(), index = draw() >> (i % 64);
    ASSERT_EQ(Philox(seed, stream, index / 4).word[index % 4], RandomBits(seed, stream, index))
        << "drawn with seed " << kSeed << ": " << seed << " " << stream << " " << index;
  }
}

}  // namespace
}  // namespace mgc
