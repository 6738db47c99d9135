#include "tools/views/diff.h"

#include "graph/base/json.h"
#include "gtest/gtest.h"
#include "tools/views/testing/small_plan.h"

namespace mgc {
namespace {

TEST(DiffTest, EqualPlansHaveNoDifference) {
  EXPECT_TRUE(DiffPlans(SmallPlan(), SmallPlan()).empty());
  // Two sizes of one kind of collective, apart from each other.
  Plan plan = SmallPlan();
  plan.segments[0].slots = plan.segments[1].slots;
  plan.segments[0].instrs = plan.segments[1].instrs;
  for (Slot& slot : plan.segments[0].slots) slot.type.dims[0].size = 4;
  plan.classes[0].chunks[0].forward[0].layer = 0;
  EXPECT_TRUE(DiffPlans(plan, plan).empty()) << DiffText(DiffPlans(plan, plan));
  EXPECT_EQ(DiffText({}), "");
}

TEST(DiffTest, NamesWhatDiffers) {
  const Plan left = SmallPlan();
  Plan right = SmallPlan();
  right.options[0].second = "4";
  right.options.push_back({"--vp", "2"});
  right.classes[1].memory.peak = 1 << 20;
  std::swap(right.classes[0].train.compute[0], right.classes[0].train.compute[1]);
  right.segments[1].instrs[0].op = FindOp("add");
  const std::vector<ViewDifference> differences = DiffPlans(left, right);
  ASSERT_EQ(differences.size(), 5) << DiffText(differences);
  EXPECT_EQ(differences[0].what, "option --tp");
  EXPECT_EQ(differences[0].left, "2");
  EXPECT_EQ(differences[0].right, "4");
  EXPECT_EQ(differences[1].what, "option --vp");
  EXPECT_EQ(differences[1].left, "");
  EXPECT_EQ(differences[2].what, "memory of pp 1, peak");
  EXPECT_EQ(differences[3].what, "order of pp 0");
  EXPECT_EQ(differences[4].what, "segment layer.forward, instruction 0");
  const absl::StatusOr<JsonValue> root = ParseJson(DiffJson(differences), "diff");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_FALSE(root->Find("same")->boolean);
  EXPECT_EQ(root->Find("differences")->items.size(), 5);
}

TEST(DiffTest, NamesFieldsOfTheFileWhereNothingElseDiffers) {
  Plan right = SmallPlan();
  right.segments[0].slots[0].offset += 64;
  const std::vector<ViewDifference> differences = DiffPlans(SmallPlan(), right);
  ASSERT_EQ(differences.size(), 1) << DiffText(differences);
  EXPECT_EQ(differences[0].what, "segments[0].slots[0].offset");
  EXPECT_NE(differences[0].left, differences[0].right);
}

TEST(DiffTest, NamesMissingSegmentsAndStages) {
  const Plan left = SmallPlan();
  Plan right = SmallPlan(4);
  right.segments[7].name = "other";
  const std::string text = DiffText(DiffPlans(left, right));
  EXPECT_NE(text.find("segment update\n< 2 instructions\n"), std::string::npos) << text;
  EXPECT_NE(text.find("segment other\n> 2 instructions\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stage 0\n< forward: embedding.forward layer.forward;"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace mgc
