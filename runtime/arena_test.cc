#include "runtime/arena.h"

#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(Arena, IsZero) {
  const absl::StatusOr<Arena> arena = Arena::Create(10000);
  ASSERT_TRUE(arena.ok()) << arena.status();
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(arena->data()[i], 0) << i;
}

TEST(ZeroStretch, ReachesFromItsFirstToItsLastByte) {
  for (int64_t begin = 0; begin < 70; ++begin) {
    for (int64_t bytes : {0, 1, 5, 63, 64, 65, 127, 128, 200}) {
      std::vector<char> memory(300, 'x');
      ZeroStretch(memory.data() + begin, bytes);
      for (int64_t i = 0; i < 300; ++i) {
        const bool inside = i >= begin && i < begin + bytes;
        ASSERT_EQ(memory[static_cast<size_t>(i)], inside ? '\0' : 'x')
            << bytes << " bytes from " << begin << ", byte " << i;
      }
    }
  }
}

}  // namespace
}  // namespace mgc
