#include "tools/launch/member.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(Member, IsWhatItWasBehindTheMessage) {
  const Member own = OwnMember(5, ~uint64_t{0}, SimdLevel::kAvx512);
  const Member told = UnpackMember(PackMember(own));
  EXPECT_EQ(told.pid, own.pid);
  EXPECT_EQ(told.board, 5);
  EXPECT_EQ(told.board_key, ~uint64_t{0});
  EXPECT_EQ(told.simd_level, SimdLevel::kAvx512);
  EXPECT_EQ(told.host, own.host);
  EXPECT_EQ(told.processors, own.processors);
  EXPECT_FALSE(own.processors.empty());
  EXPECT_EQ(UnpackMember("of another version").board, -1);
}

TEST(Member, ShareProcessorsOfTheirHost) {
  const std::vector<Member> members = {{1, 3, 0, SimdLevel::kAvx2, "one", {0, 1, 2, 3}},
                                       {2, 3, 0, SimdLevel::kAvx2, "one", {2, 3}},
                                       {3, 3, 0, SimdLevel::kAvx2, "two", {0, 1, 2, 3}}};
  EXPECT_EQ(WorkersOf(members, 0), 2);
  EXPECT_EQ(WorkersOf(members, 1), 1);
  EXPECT_EQ(WorkersOf(members, 2), 4);
}

TEST(Member, UseWhatAllHave) {
  std::vector<Member> members = {{1, 3, 0, SimdLevel::kAvx512Bf16, "one", {}},
                                 {2, 3, 0, SimdLevel::kAvx512Bf16, "two", {}}};
  EXPECT_EQ(CommonLevel(members), SimdLevel::kAvx512Bf16);
  EXPECT_FALSE(CommonLevelNote(members).has_value());
  members[1].simd_level = SimdLevel::kAvx2;
  EXPECT_EQ(CommonLevel(members), SimdLevel::kAvx2);
  EXPECT_EQ(*CommonLevelNote(members),
            "kernels are of AVX2, the most that all processes have (process 1, host two; process "
            "0, host one, has AVX-512 with BF16)");
}

}  // namespace
}  // namespace mgc
