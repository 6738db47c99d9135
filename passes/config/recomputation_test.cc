#include "passes/config/recomputation.h"

#include <string>

#include "gtest/gtest.h"
#include "passes/config/place_layers.h"

namespace mgc {
namespace {

TEST(RecomputationTest, TextAndBack) {
  for (const std::string text :
       {"none", "selective", "full", "full,none", "full*2,none*4", "selective,full*3,none,full"}) {
    const absl::StatusOr<Recomputation> parsed = ParseRecomputation(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ToString(*parsed), text);
  }
  EXPECT_EQ(ToString(ParseRecomputation("full,full,none*1").value()), "full*2,none");
}

TEST(RecomputationTest, SaysWhatIsWrong) {
  for (const std::string text : {"", "half", "full*", "full*0", "full*-1", "full*2*2", "full,,none",
                                 "full*2 ", "FULL", "full*99999999999999999999"}) {
    const absl::Status status = ParseRecomputation(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
  }
  EXPECT_FALSE(ParseRecomputation("full*65536,none").ok());
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
