#include "passes/graph/shard/claims.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

class ClaimsTest : public testing::Test {
 protected:
  ClaimsTest() : mesh_(*Mesh::Create({{"tp.1", 2}, {"tp.0", 2}, {"dp", 2}})) {}

  Sharding Parse(const char* text) const {
    const absl::StatusOr<Sharding> sharding = ParseSharding(text, mesh_);
    EXPECT_TRUE(sharding.ok()) << sharding.status();
    return *sharding;
  }

  // `m=dp n=tp.0*tp.1`, factors without axes left out.
  std::string Served(const FactorRule& rule, const Claims& claims) const {
    std::vector<std::string> served;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      std::vector<std::string> axes;
      for (AxisId axis : claims.axes()[f]) axes.push_back(mesh_.name(axis));
      if (!axes.empty()) served.push_back(rule.factors[f].name + "=" + absl::StrJoin(axes, "*"));
    }
    return absl::StrJoin(served, " ");
  }

  static TensorType Type(std::vector<Dim> dims) { return {DType::kF32, std::move(dims)}; }

  static FactorRule Bind(const char* text, const std::vector<TensorType>& operands) {
    std::vector<const TensorType*> pointers;
    pointers.reserve(operands.size());
    for (const TensorType& type : operands) pointers.push_back(&type);
    const absl::StatusOr<FactorRule> rule = BindRule(RuleText(text), pointers, {});
    EXPECT_TRUE(rule.ok()) << rule.status();
    return *rule;
  }

  FactorRule Matmul() const {
    return Bind("m k, k n -> m n",
                {Type({{8, "seq"}, {8, "embed"}}), Type({{8, "embed"}, {8, "mlp"}})});
  }

  const Mesh mesh_;
};

TEST_F(ClaimsTest, SaysWhoTookAnAxisAndWhyOthersLostIt) {
  const FactorRule rule = Matmul();
  Claims claims(rule, mesh_);
  claims.Claim(rule.operands[1], Parse("-,tp.0"), 7);
  claims.Claim(rule.operands[0], Parse("tp.0,-"), 3);
  EXPECT_EQ(claims.HolderOf(rule.Find("n"), *Parse("tp.0").dims[0].begin()), 7);
  EXPECT_EQ(claims.HolderOf(rule.Find("m"), *Parse("tp.0").dims[0].begin()), -1);
  ASSERT_EQ(claims.refused().size(), 1u);
  const RefusedClaim& lost = claims.refused()[0];
  EXPECT_EQ(lost.why, ClaimRefusal::kServes);
  EXPECT_EQ(lost.dim, 0);
  EXPECT_EQ(lost.who, 3);
  EXPECT_EQ(lost.holder, 7);
  // Cut otherwise, carried, and needed whole.
  claims.Claim(rule.operands[0], Parse("-,dp"), 4);
  claims.Claim(rule.operands[1], Parse("tp.1,-"), 5);
  EXPECT_EQ(claims.refused()[1].why, ClaimRefusal::kOtherwise);
  const FactorRule norm =
      Bind("b s!, s -> b s!", {Type({{8, "batch"}, {8, "seq"}}), Type({{8, "seq"}})});
  Claims of_norm(norm, mesh_);
  of_norm.Block(Parse("dp").dims[0].AsSet());
  of_norm.Claim(norm.operands[0], Parse("dp,tp.0"));
  ASSERT_EQ(of_norm.refused().size(), 2u);
  EXPECT_EQ(of_norm.refused()[0].why, ClaimRefusal::kCarried);
  EXPECT_EQ(of_norm.refused()[1].why, ClaimRefusal::kWhole);
}

TEST_F(ClaimsTest, AnAxisServesTheFirstThatClaimsIt) {
  const FactorRule rule = Matmul();
  Claims weight_first(rule, mesh_);
  weight_first.Claim(rule.operands[1], Parse("-,tp.0"));
  weight_first.Claim(rule.operands[0], Parse("tp.0,-"));
  EXPECT_EQ(Served(rule, weight_first), "n=tp.0");
  Claims left_to_right(rule, mesh_);
  left_to_right.Claim(rule.operands[0], Parse("tp.0,-"));
  left_to_right.Claim(rule.operands[1], Parse("-,tp.0"));
  EXPECT_EQ(Served(rule, left_to_right), "m=tp.0");
}

TEST_F(ClaimsTest, DifferentAxesServeDifferentFactors) {
  const FactorRule rule = Matmul();
  Claims claims(rule, mesh_);
  claims.Claim(rule.operands[1], Parse("tp.0*tp.1,-"));
  claims.Claim(rule.operands[0], Parse("dp,tp.0*tp.1"));
  EXPECT_EQ(Served(rule, claims), "m=dp k=tp.0*tp.1");
}

// Major to minor, stopping at the first refusal: tp.1 alone would be another cut.
TEST_F(ClaimsTest, ADimStopsAtTheFirstRefusal) {
  const FactorRule rule = Matmul();
  Claims claims(rule, mesh_);
  claims.Claim(rule.operands[1], Parse("-,tp.0"));
  claims.Claim(rule.operands[0], Parse("tp.0*tp.1,-"));
  EXPECT_EQ(Served(rule, claims), "n=tp.0");
  // What is cut already must be cut alike from the front on.
  Claims other(rule, mesh_);
  other.Claim(rule.operands[1], Parse("tp.1,-"));
  other.Claim(rule.operands[0], Parse("-,tp.1*dp"));
  EXPECT_EQ(Served(rule, other), "k=tp.1*dp");
  other.Claim(rule.operands[0], Parse("-,tp.0"));
  EXPECT_EQ(Served(rule, other), "k=tp.1*dp");
}

TEST_F(ClaimsTest, ClosedDimsTakeNoMore) {
  const FactorRule rule = Matmul();
  Claims claims(rule, mesh_);
  claims.ClaimClosed(rule.results[0], Parse("-,tp.0"));  // a parameter's gradient
  claims.Claim(rule.operands[0], Parse("dp,tp.1"));
  EXPECT_EQ(Served(rule, claims), "k=tp.1 n=tp.0");
}

TEST_F(ClaimsTest, BlockedAxesServeNothing) {
  const FactorRule rule = Matmul();
  Claims claims(rule, mesh_);
  claims.Block({mesh_.FindAtomic("dp")});
  claims.Claim(rule.operands[0], Parse("dp,tp.0"));
  EXPECT_EQ(Served(rule, claims), "k=tp.0");
}

// What is cut unevenly stays so, except where it is merged with another dim.
TEST_F(ClaimsTest, UnevenCutsAreOfADimAlone) {
  const FactorRule rule = Bind("v h, b s -> b s h", {Type({{13, "vocab"}, {6, "embed"}}),
                                                     {DType::kI64, {{2, "batch"}, {3, "seq"}}}});
  Claims claims(rule, mesh_);
  claims.Claim(rule.operands[0], Parse("tp.0*tp.1,-"));
  claims.Claim(rule.operands[1], Parse("-,dp"));  // 3 over 2
  EXPECT_EQ(Served(rule, claims), "v=tp.0*tp.1 s=dp");
  const FactorRule merged = Bind("v h -> (v h)", {Type({{6, "vocab"}, {4, "embed"}})});
  Claims rows(merged, mesh_);
  rows.Claim(merged.operands[0], Parse("tp.0*dp,-"));  // 6 over 2 goes, over 4 does not
  EXPECT_EQ(Served(merged, rows), "v=tp.0");
}

TEST_F(ClaimsTest, WholeFactorsAreNotCut) {
  const FactorRule rule = Bind("b h!, h -> b h!", {Type({{8, ""}, {8, ""}}), Type({{8, ""}})});
  Claims claims(rule, mesh_);
  claims.Claim(rule.operands[0], Parse("dp,tp.0"));
  EXPECT_EQ(Served(rule, claims), "b=dp");
}

// heads = kv heads times queries of one: axes go to the major factor while they divide it, to the
// next only where it is used up.
TEST_F(ClaimsTest, FactorsOfADimInTurn) {
  const std::vector<TensorType> types = {Type({{4, "heads"}}), Type({{2, "kv_heads"}})};
  const FactorRule rule = Bind("(k g), k -> (k g)", types);
  Claims both(rule, mesh_);
  both.Claim(rule.operands[0], Parse("tp.0*tp.1"));
  EXPECT_EQ(Served(rule, both), "k=tp.0 g=tp.1");
  const std::vector<TensorType> six = {Type({{6, "heads"}}), Type({{3, "kv_heads"}})};
  const FactorRule odd = Bind("(k g), k -> (k g)", six);
  Claims refused(odd, mesh_);
  refused.Claim(odd.operands[0], Parse("tp.0"));
  EXPECT_EQ(Served(odd, refused), "");
  const std::vector<TensorType> one = {Type({{4, "heads"}}), Type({{1, "kv_heads"}})};
  const FactorRule mqa = Bind("(k g), k -> (k g)", one);
  Claims shared(mqa, mesh_);
  shared.Claim(mqa.operands[0], Parse("tp.0*tp.1"));
  EXPECT_EQ(Served(mqa, shared), "g=tp.0*tp.1");
}

// Rows made of a batch and its tokens: tokens may be cut where the batch is down to one element.
TEST_F(ClaimsTest, AMinorFactorOfAMergedDimWaitsForTheMajorOnes) {
  const FactorRule rule =
      Bind("b s e -> (b s) e", {Type({{4, "batch"}, {8, "seq"}, {6, "embed"}})});
  Claims refused(rule, mesh_);
  refused.Claim(rule.operands[0], Parse("dp,tp.0,-"));
  EXPECT_EQ(Served(rule, refused), "b=dp");
  Claims used_up(rule, mesh_);
  used_up.Claim(rule.operands[0], Parse("dp*tp.1,tp.0,-"));
  EXPECT_EQ(Served(rule, used_up), "b=dp*tp.1 s=tp.0");
}

}  // namespace
}  // namespace mgc
