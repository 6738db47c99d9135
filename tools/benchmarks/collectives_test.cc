#include "tools/benchmarks/collectives.h"

#include <string>

#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr int64_t kElements = 1000;

int64_t BytesOf(const std::string& op) {
  const auto side = CollectiveRunner::Create(op, kElements, DType::kF32, /*workers=*/2);
  EXPECT_TRUE(side.ok()) << side.status();
  EXPECT_TRUE((*side)->Step().ok());
  return static_cast<const CollectiveRunner&>(**side).bytes();
}

TEST(CollectiveRunnerTest, CountsWhatBothRanksReadAndWrite) {
  EXPECT_EQ(BytesOf("all_reduce"), 4 * kElements * 4);
  EXPECT_EQ(BytesOf("reduce_scatter"), 3 * kElements * 4);
  EXPECT_EQ(BytesOf("all_gather"), 3 * kElements * 4);
}

TEST(CollectiveRunnerTest, RefusesWhatIsNotTimedAlone) {
  EXPECT_FALSE(CollectiveRunner::Create("all_to_all", kElements, DType::kF32, 1).ok());
  EXPECT_FALSE(CopyRunner::Create("slice", kElements, DType::kF32, 1).ok());
}

TEST(CopyRunnerTest, Copies) {
  const auto side = CopyRunner::Create("all_reduce", kElements, DType::kBF16, /*workers=*/2);
  ASSERT_TRUE(side.ok()) << side.status();
  const auto time = (*side)->Step();
  ASSERT_TRUE(time.ok());
  EXPECT_GT(time->seconds, 0);
}

}  // namespace
}  // namespace mgc
