#include "tools/benchmarks/child_side.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

absl::StatusOr<std::unique_ptr<BenchSide>> Shell(const std::string& script) {
  return ChildSide::Create({"sh", "-c", script});
}

TEST(ChildSide, AnswersEveryStep) {
  auto side = Shell("echo ready; while read line; do n=$((n + 1)); echo 0.$n 1.$n 7$n; done");
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_EQ((*side)->Step()->seconds, 0.1);
  const absl::StatusOr<StepTime> second = (*side)->Step();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->seconds, 0.2);
  EXPECT_EQ(second->cpu_seconds, 1.2);
  EXPECT_EQ((*side)->profile().peak_bytes, 72);
}

TEST(ChildSide, SaysWhatWentWrong) {
  EXPECT_FALSE(ChildSide::Create({"no-such-program"}).ok());
  EXPECT_TRUE(absl::StrContains(Shell("true").status().message(), "has ended"));
  EXPECT_TRUE(absl::StrContains(Shell("echo 'no torch'").status().message(), "no torch"));
  auto ends = Shell("echo ready");
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_TRUE(absl::StrContains((*ends)->Step().status().message(), "has ended"));
  auto babbles = Shell("echo ready; read line; echo soon");
  ASSERT_TRUE(babbles.ok()) << babbles.status();
  EXPECT_TRUE(absl::StrContains((*babbles)->Step().status().message(), "'soon'"));
}

}  // namespace
}  // namespace mgc
