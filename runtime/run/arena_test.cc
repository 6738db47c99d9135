#include "runtime/run/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/run/workers.h"

namespace mgc {
namespace {

TEST(Arena, IsZero) {
  SerialParallel serial;
  const absl::StatusOr<Arena> arena = Arena::Create(10000, serial);
  ASSERT_TRUE(arena.ok()) << arena.status();
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(arena->data()[i], 0) << i;
}

// A page that is not there yet is one that a step may fail to get.
TEST(Arena, HasAllItsPages) {
  Workers workers(2, 2);
  constexpr int64_t kBytes = (int64_t{200} << 20) + 5;  // more than is fetched at once
  const absl::StatusOr<Arena> arena = Arena::Create(kBytes, workers);
  ASSERT_TRUE(arena.ok()) << arena.status();
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> there(static_cast<size_t>((kBytes + page - 1) / page));
  ASSERT_EQ(mincore(arena->data(), static_cast<size_t>(kBytes), there.data()), 0);
  EXPECT_EQ(std::count_if(there.begin(), there.end(), [](unsigned char p) { return p & 1; }),
            static_cast<int64_t>(there.size()));
}

TEST(Arena, RefusesWhatTheSystemCannotGive) {
  SerialParallel serial;
  const absl::Status status = Arena::Create(int64_t{1} << 60, serial).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()), "the system has no 1024.0 PiB for a rank");
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
