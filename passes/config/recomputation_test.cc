#include "passes/config/recomputation.h"

#include <string>

#include "gtest/gtest.h"
#include "passes/config/place_layers.h"

namespace mgc {
namespace {

TEST(RecomputationTest, TextAndBack) {
  for (const std::string text :
       {"none", "selective", "full", "full,none", "full*2,none*4", "selective,full*3,none,full",
        "(full*2,none)*3", "full*4,(selective,full*2)*2,none*9", "(full,none,full*2,none)*2"}) {
    const absl::StatusOr<Recomputation> parsed = ParseRecomputation(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ToString(*parsed), text);
  }
  EXPECT_EQ(ToString(ParseRecomputation("full,full,none*1").value()), "full*2,none");
  EXPECT_EQ(ToString(ParseRecomputation("full,none,full,none,full").value()), "(full,none)*2,full");
  EXPECT_EQ(ToString(ParseRecomputation("(full)*2,(none)*1").value()), "full*2,none");
  EXPECT_EQ(ParseRecomputation("(full*2,none)*64").value().by_layer().size(), 192U);
}

TEST(RecomputationTest, SaysWhatIsWrong) {
  for (const std::string text :
       {"", "half", "full*", "full*0", "full*-1", "full*2*2", "full,,none", "full*2 ", "FULL",
        "full*99999999999999999999", "(full,none)", "(full,none", "(full*2", "()*2", "((full)*2)*2",
        "(full,none)*0", "(full)none*2", "full)*2", "(full,)*2"}) {
    const absl::Status status = ParseRecomputation(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
  }
  EXPECT_FALSE(ParseRecomputation("full*65536,none").ok());
  EXPECT_FALSE(ParseRecomputation("(full,none)*32769").ok());
  EXPECT_EQ(ParseRecomputation("full*65536").value().by_layer().size(),
            static_cast<size_t>(kMaxPipelineSize));
}

TEST(RecomputationTest, IsOfLayers) {
  const Recomputation all = RecomputeKind::kFull;
  EXPECT_EQ(all.Of(-1), RecomputeKind::kFull);
  EXPECT_TRUE(all.Any());
  const Recomputation some = ParseRecomputation("full,selective,none").value();
  EXPECT_EQ(some.Of(0), RecomputeKind::kFull);
  EXPECT_EQ(some.Of(1), RecomputeKind::kSelective);
  EXPECT_EQ(some.Of(2), RecomputeKind::kNone);
  // Embedding and head.
  EXPECT_EQ(some.Of(-1), RecomputeKind::kNone);
  EXPECT_EQ(some.Of(3), RecomputeKind::kNone);
  EXPECT_TRUE(some.Any());
  EXPECT_FALSE(ParseRecomputation("none*3").value().Any());
  EXPECT_FALSE(Recomputation().Any());
}

TEST(RecomputationTest, ThatIsAlikeIsSaidOnce) {
  EXPECT_EQ(ToString(SimplestOf({RecomputeKind::kFull, RecomputeKind::kFull})), "full");
  EXPECT_EQ(ToString(SimplestOf({RecomputeKind::kFull, RecomputeKind::kNone})), "full,none");
  EXPECT_EQ(ToString(SimplestOf({})), "none");
}

}  // namespace
}  // namespace mgc
