#include "passes/config/optimizer_config.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ParamGroupTest, IsReadAsItPrints) {
  for (const char* text : {"*.norm*:lr=0.5,decay=0", "head:decay=2", "a:b:lr=0", "*:lr=1"}) {
    const absl::StatusOr<ParamGroup> group = ParseParamGroup(text);
    ASSERT_TRUE(group.ok()) << text << ": " << group.status();
    EXPECT_EQ(ToString(*group), text);
  }
  const absl::StatusOr<ParamGroup> group = ParseParamGroup("layers.*:decay=0.25");
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->pattern, "layers.*");
  EXPECT_EQ(group->lr, 1);
  EXPECT_EQ(group->decay, 0.25);
}

TEST(ParamGroupTest, AllThatIsWrongIsSaid) {
  EXPECT_THAT(std::string(ParseParamGroup("rl=1,decay=-2,lr=nan").status().message()),
              AllOf(HasSubstr("there is no PATTERN"), HasSubstr("`rl` is neither lr nor decay"),
                    HasSubstr("decay is multiplied by `-2`"), HasSubstr("lr is multiplied by")));
  EXPECT_FALSE(ParseParamGroup("a:").ok());
  EXPECT_FALSE(ParseParamGroup("").ok());
  EXPECT_FALSE(ParseParamGroup("a:lr").ok());
}

TEST(ParamGroupTest, AStarIsAnyRunOfCharacters) {
  EXPECT_TRUE(Matches("layers.*.norm*", "layers.12.norm1"));
  EXPECT_TRUE(Matches("layers.*.norm*", "layers.0.attention.q_norm.norm"));
  EXPECT_FALSE(Matches("layers.*.norm", "layers.0.norm1"));
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_TRUE(Matches("*a*b", "xaybab"));
  EXPECT_FALSE(Matches("*a*b", "xayba"));
  EXPECT_TRUE(Matches("head", "head"));
  EXPECT_FALSE(Matches("", "head"));
}

}  // namespace
}  // namespace mgc
