#include "graph/types/factor_rule.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// Axes: a = 0, b = 1, each of two ranks.
Mesh TestMesh() { return Mesh::Create({{"a", 2}, {"b", 2}}).value(); }

TensorType Type(std::vector<Dim> dims) { return {DType::kF32, std::move(dims)}; }

absl::StatusOr<FactorRule> Bind(absl::string_view text, const std::vector<TensorType>& operands,
                                const std::vector<TensorType>& results = {}) {
  std::vector<const TensorType*> ins;
  std::vector<const TensorType*> outs;
  ins.reserve(operands.size());
  outs.reserve(results.size());
  for (const TensorType& type : operands) ins.push_back(&type);
  for (const TensorType& type : results) outs.push_back(&type);
  return BindRule(RuleText(text), ins, outs);
}

TEST(FactorRuleTest, BindsAMatmul) {
  const FactorRule rule =
      Bind("m k, k n -> m n", {Type({{4, "batch"}, {6, ""}}), Type({{6, "embed"}, {8, "mlp"}})})
          .value();
  ASSERT_EQ(rule.factors.size(), 3u);
  EXPECT_EQ(rule.factors[rule.Find("k")].size, 6);
  EXPECT_EQ(rule.factors[rule.Find("k")].dim_name, "embed");
  EXPECT_EQ(rule.factors[rule.Find("n")].size, 8);
  ASSERT_EQ(rule.results.size(), 1u);
  EXPECT_FALSE(rule.InResult(rule.Find("k"), 0));
  EXPECT_TRUE(rule.InResult(rule.Find("m"), 0));
  EXPECT_EQ(rule.Find("x"), -1);
}

TEST(FactorRuleTest, ReadsMarksEllipsisAndScalars) {
  const FactorRule rule =
      Bind("... v^, h! -> ..., ", {Type({{2, ""}, {3, ""}, {5, "vocab", 4}}), Type({{7, ""}})})
          .value();
  EXPECT_TRUE(rule.factors[rule.Find("v")].maximum);
  EXPECT_EQ(rule.factors[rule.Find("v")].multiple, 4);
  EXPECT_TRUE(rule.factors[rule.Find("h")].whole);
  ASSERT_EQ(rule.results.size(), 2u);
  EXPECT_EQ(rule.results[0].size(), 2u);
  EXPECT_TRUE(rule.results[1].empty());
}

TEST(FactorRuleTest, ASourceHasNoOperandsAndOneScalarResult) {
  const FactorRule rule = Bind(" -> ", {}).value();
  EXPECT_TRUE(rule.operands.empty());
  EXPECT_EQ(rule.results.size(), 1u);
}

TEST(FactorRuleTest, OneOperandTextServesAll) {
  const TensorType type = Type({{2, ""}, {3, ""}});
  const FactorRule rule = Bind("... -> ...", {type, type, type}).value();
  EXPECT_EQ(rule.operands.size(), 3u);
  EXPECT_EQ(rule.operands[0], rule.operands[2]);
}

TEST(FactorRuleTest, GroupsResolveThroughOneAnother) {
  // f = 4, then e = 6 / 2, d through the third dim, and so on along the chain.
  const FactorRule rule =
      Bind("(a b) (c d) (e f) -> a (b c) (d e) f", {Type({{6, ""}, {35, ""}, {12, ""}})},
           {Type({{2, ""}, {15, ""}, {21, ""}, {4, ""}})})
          .value();
  EXPECT_EQ(rule.factors[rule.Find("b")].size, 3);
  EXPECT_EQ(rule.factors[rule.Find("c")].size, 5);
  EXPECT_EQ(rule.factors[rule.Find("d")].size, 7);
  EXPECT_EQ(rule.factors[rule.Find("e")].size, 3);
}

TEST(FactorRuleTest, RefusesWhatDoesNotFit) {
  const TensorType m = Type({{2, ""}, {3, ""}});
  const auto message = [](const absl::StatusOr<FactorRule>& rule) {
    return std::string(rule.status().message());
  };
  EXPECT_TRUE(absl::StrContains(message(Bind("a b, b -> a", {m, Type({{4, ""}})})),
                                "operand 1: sizes differ along b: 3 and 4"));
  EXPECT_TRUE(absl::StrContains(message(Bind("a b, b -> a", {m})), "expected 2 operand, got 1"));
  EXPECT_TRUE(absl::StrContains(message(Bind("a -> a", {m})), "expected 1 dims"));
  EXPECT_TRUE(absl::StrContains(message(Bind("a (b c), b -> a", {m, Type({{2, ""}})})),
                                "a dim of 3 is not made of b = 2 times c"));
  EXPECT_TRUE(absl::StrContains(message(Bind("a (b c) -> a", {m})), "is not made of"));
  EXPECT_TRUE(absl::StrContains(message(Bind("..., ... -> ", {m, Type({{2, ""}})})), "`...`"));
  EXPECT_TRUE(absl::StrContains(
      message(Bind("v, v -> v", {Type({{9, "vocab", 4}}), Type({{9, "vocab"}})})), "multiples"));
}

TEST(FactorRuleTest, AxesGoToTheMajorFactorFirst) {
  const Mesh mesh = TestMesh();
  const FactorRule rule =
      Bind("(k g) d, k d -> (k g) d", {Type({{8, "heads"}, {4, ""}}), Type({{2, ""}, {4, ""}})})
          .value();
  FactorAxes axes(rule.factors.size());
  ASSERT_TRUE(DistributeAxes(rule.operands[0][0], rule, {0, 1}, mesh, &axes));
  EXPECT_EQ(axes[rule.Find("k")], AxisList({0}));
  EXPECT_EQ(axes[rule.Find("g")], AxisList({1}));
  EXPECT_TRUE(Representable(rule, axes, mesh));
  EXPECT_EQ(ResultSharding(rule, axes, 0).dims[0], AxisList({0, 1}));

  axes.assign(rule.factors.size(), {});
  axes[rule.Find("g")] = {0};  // k is whole, so the pieces of g are no runs of heads
  EXPECT_FALSE(Representable(rule, axes, mesh));
}

TEST(FactorRuleTest, AnAxisThatNothingCanTakeIsRefused) {
  const Mesh mesh = TestMesh();
  const FactorRule rule =
      Bind("(k g) -> k g", {Type({{15, ""}})}, {Type({{3, ""}, {5, ""}})}).value();
  FactorAxes axes(rule.factors.size());
  EXPECT_FALSE(DistributeAxes(rule.operands[0][0], rule, {0}, mesh, &axes));
}

// A dim that stands alone may be cut unevenly; where it is merged with another, its pieces are no
// pieces of the merged dim.
TEST(FactorRuleTest, FactorsOfAMergedDimAreCutEvenly) {
  const Mesh mesh = TestMesh();
  const FactorRule rule =
      Bind("k g -> (k g)", {Type({{5, ""}, {3, ""}})}, {Type({{15, ""}})}).value();
  FactorAxes axes(rule.factors.size());
  EXPECT_TRUE(DistributeAxes(rule.operands[0][0], rule, {0}, mesh, &axes));
  EXPECT_EQ(axes[rule.Find("k")], AxisList({0}));
  EXPECT_FALSE(Representable(rule, axes, mesh));
  const FactorRule alone = Bind("k g -> k", {Type({{5, ""}, {3, ""}})}).value();
  EXPECT_TRUE(Representable(alone, axes, mesh));
}

TEST(FactorRuleTest, AContractedFactorLeavesADebt) {
  const FactorRule rule = Bind("m k, k^ -> m", {Type({{2, ""}, {4, ""}}), Type({{4, ""}})}).value();
  FactorAxes axes(rule.factors.size());
  axes[rule.Find("m")] = {1};
  axes[rule.Find("k")] = {0};
  const Sharding result = ResultSharding(rule, axes, 0);
  EXPECT_EQ(result.dims[0], AxisList({1}));
  EXPECT_EQ(result.max, AxisSet({0}));
  EXPECT_TRUE(result.sum.empty());
}

}  // namespace
}  // namespace mgc
