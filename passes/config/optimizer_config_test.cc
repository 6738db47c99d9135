#include "passes/config/optimizer_config.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ParamGroupTest, IsReadAsItPrints) {
  for (const char* text : {"*.norm*:lr=0.5,decay=0", "head:decay=2", "a:b:lr=0", "*:lr=1",
                           "a*:lr=2;b*:decay=3", "w:lr=0.123456789"}) {
    const auto groups = ParseParamGroups(text);
    ASSERT_TRUE(groups.ok()) << text << ": " << groups.status();
    EXPECT_EQ(ToString(*groups), text);
  }
  const auto groups = ParseParamGroups("layers.*:decay=0.25;head:lr=2");
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].pattern, "layers.*");
  EXPECT_EQ((*groups)[0].lr, 1);
  EXPECT_EQ((*groups)[0].decay, 0.25);
  EXPECT_EQ((*groups)[1].lr, 2);
}

TEST(ParamGroupTest, AllThatIsWrongIsSaid) {
  EXPECT_THAT(std::string(ParseParamGroups("rl=1,decay=-2,lr=nan").status().message()),
              AllOf(HasSubstr("there is no PATTERN"), HasSubstr("`rl` is neither lr nor decay"),
                    HasSubstr("decay is multiplied by `-2`"), HasSubstr("lr is multiplied by")));
  EXPECT_THAT(std::string(ParseParamGroups("a:lr=x;:lr=1").status().message()),
              AllOf(HasSubstr("lr is multiplied by `x`"), HasSubstr("there is no PATTERN")));
  EXPECT_FALSE(ParseParamGroups("a:").ok());
  EXPECT_FALSE(ParseParamGroups("").ok());
  EXPECT_FALSE(ParseParamGroups("a:lr").ok());
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
