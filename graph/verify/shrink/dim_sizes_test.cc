#include "graph/verify/shrink/dim_sizes.h"

#include <set>
#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ir/retype.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Mesh MeshOf(int64_t tp, int64_t dp) {
  absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp", tp}, {"dp", dp}});
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return *std::move(mesh);
}

Sharding Cut(const char* text, const Mesh& mesh) {
  absl::StatusOr<Sharding> sharding = ParseSharding(text, mesh);
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  return *std::move(sharding);
}

class DimSizesTest : public testing::Test {
 protected:
  int64_t SmallOf(const char* name, int64_t size) const {
    return sizes_.Small({DType::kF32, {{size, name}}}).dims[0].size;
  }
  void Add(const char* name, int64_t size, const char* sharding) {
    const Sharding cut = Cut(sharding, real_);
    sizes_.AddTensor({DType::kF32, {{size, name}}}, &cut);
  }

  const Mesh real_ = MeshOf(8, 16);
  const Mesh small_ = MeshOf(4, 2);
  DimSizes sizes_{real_, small_};
};

TEST_F(DimSizesTest, WhatDividesStillDividesAndNoTwoAreEqual) {
  Add("mlp", 4096, "@m[tp]");
  Add("batch", 32, "@m[dp]");
  Add("embed", 1024, "@m[-]");
  Add("seq", 2048, "@m[tp]");
  ASSERT_TRUE(sizes_.Solve({false, true, false}).ok());
  EXPECT_EQ(SmallOf("mlp", 4096) % 4, 0);
  EXPECT_EQ(SmallOf("seq", 2048) % 4, 0);
  EXPECT_EQ(SmallOf("batch", 32) % 2, 0);
  const std::set<int64_t> all = {SmallOf("mlp", 4096), SmallOf("batch", 32), SmallOf("embed", 1024),
                                 SmallOf("seq", 2048)};
  EXPECT_EQ(all.size(), 4u);
  EXPECT_LT(*all.rbegin(), 13);
}

// Three dims of three sizes are all 4 where that is asked for; two of one size are told apart.
TEST_F(DimSizesTest, DifferentSizesMayBecomeOneWhereAskedAndEqualOnesNever) {
  Add("mlp", 4096, "@m[tp]");
  Add("embed", 1024, "@m[tp]");
  Add("seq", 2048, "@m[tp]");
  Add("out", 1024, "@m[tp]");
  DimSizes::Wishes wishes;
  wishes.share_sizes = true;
  ASSERT_TRUE(sizes_.Solve(wishes).ok());
  EXPECT_EQ(SmallOf("mlp", 4096), 4);
  EXPECT_EQ(SmallOf("seq", 2048), 4);
  const std::set<int64_t> equal = {SmallOf("embed", 1024), SmallOf("out", 1024)};
  EXPECT_EQ(equal, (std::set<int64_t>{4, 8}));
}

TEST_F(DimSizesTest, AxesThatExhaustADimStillDo) {
  Add("batch", 16, "@m[dp]");
  Add("kv_heads", 8, "@m[tp]");
  ASSERT_TRUE(sizes_.Solve({false, true, false}).ok());
  EXPECT_EQ(SmallOf("batch", 16), 2);
  EXPECT_EQ(SmallOf("kv_heads", 8), 4);
}

TEST_F(DimSizesTest, EvenWhereThatIsAskedForOfDimsThatAreCutToo) {
  const Mesh three = MeshOf(3, 2);
  DimSizes sizes(real_, three);
  const TensorType head = {DType::kF32, {{16, "head_dim"}}};
  const Sharding cut = Cut("@m[tp]", real_);
  sizes.AddTensor(head, &cut);
  ASSERT_TRUE(sizes.Solve({true, true, false}).ok());
  EXPECT_EQ(sizes.Small(head).dims[0].size, 3);
  ASSERT_TRUE(sizes.Solve({true, true, true}).ok());
  EXPECT_EQ(sizes.Small(head).dims[0].size, 6);
}

// 5 over 4: two, two, one, none.
TEST_F(DimSizesTest, ARestLeavesFullShortAndEmptyShards) {
  Add("vocab", 257, "@m[tp]");
  ASSERT_TRUE(sizes_.Solve({false, true, false}).ok());
  EXPECT_EQ(SmallOf("vocab", 257), 5);
}

TEST_F(DimSizesTest, ADimOfSeveralFactorsIsTheirProduct) {
  const TensorType q = {DType::kF32, {{4, "batch"}, {8, "seq"}, {32, "heads"}, {16, "head_dim"}}};
  const TensorType k = {DType::kF32, {{4, "batch"}, {8, "seq"}, {8, "kv_heads"}, {16, "head_dim"}}};
  const TensorType position = {DType::kI64, {{8, "seq"}}};
  const TensorType lse = {DType::kF32, {{4, "batch"}, {32, "heads"}, {8, "seq"}}};
  const std::vector<const TensorType*> operands = {&q, &k, &k, &position, &position};
  const std::vector<const TensorType*> results = {&q, &lse};
  const Attrs attrs = {{"scale", 0.25}, {"p", 0.0}, {"key", ""}};
  absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("attention"), {attrs, operands, results});
  ASSERT_TRUE(rule.ok()) << rule.status();
  for (const TensorType* type : operands) sizes_.AddTensor(*type, nullptr);
  const Sharding heads = Cut("@m[-,-,tp,-]", real_);
  const std::vector<const Sharding*> cuts = {&heads, &heads, &heads, nullptr, nullptr};
  sizes_.AddUse(*rule, operands, cuts, results, {nullptr, nullptr});
  ASSERT_TRUE(sizes_.Solve({true, true, false}).ok());
  const int64_t kv = SmallOf("kv_heads", 8);
  EXPECT_EQ(kv, 4) << "tp exhausts the kv heads";
  EXPECT_EQ(SmallOf("heads", 32) % kv, 0);
  EXPECT_GT(SmallOf("heads", 32), kv);
  EXPECT_EQ(SmallOf("head_dim", 16) % 2, 0) << "even sizes were asked for";
}

class StatedSizesTest : public DimSizesTest {
 protected:
  // x[24] over `axes`, and its elements [4, 4 + size).
  void AddSlice(const char* axes, DimSizes* sizes, int64_t size = 10) {
    const TensorType x = {DType::kF32, {{24, "mlp"}}};
    const TensorType y = {DType::kF32, {{size, "part"}}};
    const std::vector<const TensorType*> operands = {&x};
    const std::vector<const TensorType*> results = {&y};
    const Attrs attrs = {{"dim", int64_t{0}}, {"begin", int64_t{4}}, {"end", 4 + size}};
    absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("slice"), {attrs, operands, results});
    ASSERT_TRUE(rule.ok()) << rule.status();
    const Sharding cut = Cut(axes, real_);
    sizes->AddTensor(x, &cut);
    sizes->AddTensor(y, nullptr);
    sizes->AddUse(*rule, operands, {&cut}, results, {nullptr});
  }
};

// A slice says with numbers where it begins and ends.
TEST_F(StatedSizesTest, StayWhereTheyCan) {
  AddSlice("@m[-]", &sizes_);
  ASSERT_TRUE(sizes_.Solve({false, true, false}).ok());
  EXPECT_EQ(SmallOf("mlp", 24), 24);
  EXPECT_EQ(SmallOf("part", 10), 10);
}

// A third of 24 becomes a third of 6, where 24 are too many.
TEST_F(StatedSizesTest, ShrinkTooWhereAsked) {
  AddSlice("@m[-]", &sizes_, 8);
  ASSERT_TRUE(sizes_.Solve({false, true, false, false, true}).ok());
  EXPECT_EQ(SmallOf("mlp", 24), 6);
  EXPECT_EQ(SmallOf("part", 8), 2);
}

// 24 over 8 leaves nothing, over 5 it would. The sizes are whole numbers of 2; even
// ones stay even.
TEST_F(StatedSizesTest, KeepTheirRatiosWhereAnAxisAsksForMore) {
  const Mesh five = MeshOf(5, 2);
  DimSizes sizes(real_, five);
  AddSlice("@m[tp]", &sizes);
  ASSERT_TRUE(sizes.Solve({false, true, false}).ok());
  EXPECT_EQ(sizes.Small({DType::kF32, {{24, "mlp"}}}).dims[0].size, 10 * 12);
  EXPECT_EQ(sizes.Small({DType::kF32, {{10, "part"}}}).dims[0].size, 10 * 5);
  const TensorType part = {DType::kF32, {{50, "part"}}};
  const Attrs real = {{"dim", int64_t{0}}, {"begin", int64_t{4}}, {"end", int64_t{14}}};
  const Attrs grown = RetypedAttrs(*FindOp("slice"), real, {&part});
  EXPECT_EQ(grown.Int("begin"), 10 * 2);
  EXPECT_EQ(grown.Int("end"), 10 * 7);
}

// Parts of 4,096 and 8,192 of a whole of 12,288, which tp cuts in 3 each.
TEST_F(StatedSizesTest, ShrinkWhereTheyAreLarge) {
  const Mesh three = MeshOf(3, 2);
  DimSizes sizes(real_, three);
  const TensorType a = {DType::kF32, {{4096, "a"}}};
  const TensorType b = {DType::kF32, {{8192, "b"}}};
  const TensorType both = {DType::kF32, {{12288, "both"}}};
  const std::vector<const TensorType*> operands = {&a, &b};
  const std::vector<const TensorType*> results = {&both};
  const Attrs attrs = {{"dim", int64_t{0}}};
  absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("concat"), {attrs, operands, results});
  ASSERT_TRUE(rule.ok()) << rule.status();
  const Sharding cut = Cut("@m[tp]", real_);
  for (const TensorType& type : {a, b, both}) sizes.AddTensor(type, &cut);
  sizes.AddUse(*rule, operands, {nullptr, nullptr}, results, {nullptr});
  ASSERT_TRUE(sizes.Solve({false, true, false}).ok());
  EXPECT_EQ(sizes.Small(a).dims[0].size, 6);
  EXPECT_EQ(sizes.Small(b).dims[0].size, 12);
  EXPECT_EQ(sizes.Small(both).dims[0].size, 18);
}

// Of factors, the one that is cut would grow.
TEST_F(StatedSizesTest, AreProductsLikeOthers) {
  AddSlice("@m[-]", &sizes_);
  const TensorType split = {DType::kF32, {{3, "three"}, {8, "eight"}}};
  const TensorType x = {DType::kF32, {{24, "mlp"}}};
  const std::vector<const TensorType*> operands = {&split};
  const std::vector<const TensorType*> results = {&x};
  const Attrs attrs = {{"sizes", std::vector<int64_t>{24}}};
  absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("reshape"), {attrs, operands, results});
  ASSERT_TRUE(rule.ok()) << rule.status();
  Add("three", 3, "@m[-]");
  Add("eight", 8, "@m[tp]");
  sizes_.AddTensor(split, nullptr);
  sizes_.AddUse(*rule, operands, {nullptr}, results, {nullptr});
  ASSERT_TRUE(sizes_.Solve({false, true, false}).ok());
  EXPECT_EQ(SmallOf("three", 3), 3);
  EXPECT_EQ(SmallOf("eight", 8), 8);
  EXPECT_EQ(SmallOf("mlp", 24), 24);
}

// Rows are [runs, rows of a run], of which a slice takes the first half. Elsewhere they are cut
// over dp and tp: dp exhausts the runs, and tp has to cut those of a run.
TEST_F(StatedSizesTest, AreCutAsTheProductIsElsewhere) {
  const Mesh three = MeshOf(3, 2);
  DimSizes sizes(real_, three);
  const TensorType rows = {DType::kF32, {{int64_t{16} * 64, "rows"}}};
  const TensorType runs = {DType::kF32, {{16, "runs"}, {64, "run"}}};
  const TensorType half = {DType::kF32, {{16, "runs"}, {32, "run"}}};
  const Sharding over_both = Cut("@m[dp*tp]", real_);
  const Sharding of_runs = Cut("@m[dp,-]", real_);
  sizes.AddTensor(rows, &over_both);
  sizes.AddTensor(runs, &of_runs);
  sizes.AddTensor(half, &of_runs);
  const Attrs to_runs = {{"sizes", std::vector<int64_t>{16, 64}}};
  absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("reshape"), {to_runs, {&rows}, {&runs}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  sizes.AddUse(*rule, {&rows}, {nullptr}, {&runs}, {&of_runs});
  const Attrs first = {{"dim", int64_t{1}}, {"begin", int64_t{0}}, {"end", int64_t{32}}};
  rule = RuleOf(*FindOp("slice"), {first, {&runs}, {&half}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  sizes.AddUse(*rule, {&runs}, {&of_runs}, {&half}, {&of_runs});
  ASSERT_TRUE(sizes.Solve({false, true, false}).ok());
  EXPECT_EQ(sizes.Small(runs).dims[0].size, 2);
  EXPECT_EQ(sizes.Small(runs).dims[1].size % 3, 0);
  EXPECT_EQ(sizes.Small(rows).dims[0].size, 2 * sizes.Small(runs).dims[1].size);
}

// Attention whose query heads are its key heads: one factor is the whole dim.
TEST_F(DimSizesTest, AFactorOfOneElementIsNone) {
  const TensorType q = {DType::kF32, {{4, "b"}, {8, "s"}, {4, "h"}, {6, "d"}}};
  const TensorType position = {DType::kI64, {{8, "s"}}};
  const TensorType lse = {DType::kF32, {{4, "b"}, {4, "h"}, {8, "s"}}};
  const TensorType flat = {DType::kF32, {{24, "flat"}}};
  const TensorType heads = {DType::kF32, {{4, "h"}, {6, "d"}}};
  const std::vector<const TensorType*> operands = {&q, &q, &q, &position, &position};
  const std::vector<const TensorType*> results = {&q, &lse};
  const Attrs attrs = {{"scale", 0.25}, {"p", 0.0}, {"key", ""}};
  absl::StatusOr<FactorRule> rule = RuleOf(*FindOp("attention"), {attrs, operands, results});
  ASSERT_TRUE(rule.ok()) << rule.status();
  for (const TensorType& type : {q, position, lse, flat}) sizes_.AddTensor(type, nullptr);
  sizes_.AddUse(*rule, operands, std::vector<const Sharding*>(5, nullptr), results,
                {nullptr, nullptr});
  const Attrs to_heads = {{"sizes", std::vector<int64_t>{4, 6}}};
  rule = RuleOf(*FindOp("reshape"), {to_heads, {&flat}, {&heads}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  sizes_.AddUse(*rule, {&flat}, {nullptr}, {&heads}, {nullptr});
  ASSERT_TRUE(sizes_.Solve({false, false, false}).ok());
  EXPECT_GT(SmallOf("h", 4), 1);
  EXPECT_EQ(SmallOf("flat", 24), SmallOf("h", 4) * SmallOf("d", 6));
}

}  // namespace
}  // namespace mgc
