#include "passes/graph/shard/value_uses.h"

#include <map>
#include <string>

#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

// A training graph cut out of a layer: %dy goes through a product by %w and a scaling into a
// residual sum, %dz through a product by %v.
constexpr char kBackward[] = R"(graph @g training layers=1 (
  param %w: f32[4,6],
  param %v: f32[4,6],
  data %dy: f32[2,6],
  data %dz: f32[2,6],
  data %x: f32[2,4],
  data %r: f32[2,4],
  accumulator %w/grad: f32[4,6] {of="w"},
  state %w/m: f32[4,6] {of="w"},
  state %w/v: f32[4,6] {of="w"}
) {
  %a = scale(%dy) {value=2.0} backward layer 0
  %b = scale(%dz) {value=2.0} backward layer 0
  %dw = matmul(%x, %a) {spec="s m, s n -> m n"} backward layer 0
  %w/grad.next = accumulate(%w/grad, %dw) backward layer 0
  %dxa = matmul(%a, %w) {spec="s n, m n -> s m"} backward layer 0
  %dxb = matmul(%b, %v) {spec="s n, m n -> s m"} backward layer 0
  %dx = add(%dxa, %dxb) backward layer 0
  %dr = add(%dx, %r) backward layer 0
  %l = total(%dr) backward layer 0
  %square = sum_squares(%w/grad.next) update
  %norm = stack(%square) update
  %resolved = reshard(%w/grad.next) {pin=0} update
  assign %w/grad.next -> %w/grad
  assign %resolved -> %w
  report "l" = %l
})";

class ValueUsesTest : public testing::Test {
 protected:
  ValueUsesTest() : graph_(ReadGraph(kBackward)), uses_(graph_) {
    for (const GraphInput& input : graph_.inputs()) Set(graph_.value(input.value).name, {});
  }

  ValueId Find(const std::string& name) const { return graph_.FindValue(name); }
  const Node& NodeOf(const std::string& name) const {
    return graph_.node(graph_.value(Find(name)).producer);
  }
  // The sweep has settled this value: dim `dim` is cut over axis 0, or a sum is owed over it.
  void Set(const std::string& name, AxisSet sum, int cut = -1) {
    Sharding sharding = Sharding::Whole(graph_.type(Find(name)).ndim());
    sharding.sum = sum;
    if (cut >= 0) sharding.dims[cut].push_back(0);
    known_[Find(name)] = sharding;
  }
  bool MayPush(const std::string& name) const {
    return uses_.MayPush(Find(name), 0, [this](ValueId id) {
      auto it = known_.find(id);
      return it == known_.end() ? nullptr : &it->second;
    });
  }

  const Graph graph_;
  const ValueUses uses_;
  std::map<ValueId, Sharding> known_;
};

TEST_F(ValueUsesTest, WeightsGradientsAndStates) {
  EXPECT_TRUE(uses_.IsWeight(Find("w")));
  EXPECT_FALSE(uses_.IsWeight(Find("x")));
  EXPECT_EQ(uses_.WeightOfGradient(Find("dw")), Find("w"));
  EXPECT_EQ(uses_.WeightOfGradient(Find("dxa")), kNone);
  EXPECT_EQ(uses_.StatesOf(Find("w")), (std::vector<ValueId>{Find("w/m"), Find("w/v")}));
  EXPECT_TRUE(uses_.StatesOf(Find("v")).empty());
  EXPECT_EQ(uses_.AssignedTo(Find("w/grad.next")), Find("w/grad"));
  EXPECT_EQ(uses_.AssignedTo(Find("dx")), kNone);
}

TEST_F(ValueUsesTest, WhatStaysOwed) {
  EXPECT_TRUE(uses_.StaysOwed(Find("dw")));      // into its accumulator
  EXPECT_TRUE(uses_.StaysOwed(Find("dxa")));     // into the one sum that reads it
  EXPECT_TRUE(uses_.StaysOwed(Find("square")));  // into the norm's vector
  EXPECT_FALSE(uses_.StaysOwed(Find("a")));      // two products read it
  EXPECT_FALSE(uses_.StaysOwed(Find("dr")));
  EXPECT_FALSE(uses_.StaysOwed(Find("norm")));  // nobody reads it
}

TEST_F(ValueUsesTest, WhatCarriesASum) {
  EXPECT_TRUE(uses_.CarriesOwed(NodeOf("dxa"), 0));
  EXPECT_TRUE(uses_.CarriesOwed(NodeOf("dxa"), 1));
  EXPECT_TRUE(uses_.CarriesOwed(NodeOf("a"), 0));
  EXPECT_FALSE(uses_.CarriesOwed(NodeOf("dx"), 0));      // jointly linear: all or none
  EXPECT_FALSE(uses_.CarriesOwed(NodeOf("square"), 0));  // not linear
}

// The weight's gradient may owe; the sum's other operand will, for %v is cut where it contracts.
TEST_F(ValueUsesTest, PushesIntoASumThatWillOwe) {
  Set("v", {}, 1);
  EXPECT_TRUE(MayPush("a"));
}

TEST_F(ValueUsesTest, NotIntoASumThatWillNot) {
  EXPECT_FALSE(MayPush("a"));  // %v is whole, %dz owes nothing
  Set("v", {}, 0);
  EXPECT_FALSE(MayPush("a"));  // cut, but not where it contracts
}

// %v is whole, but what comes through it owes.
TEST_F(ValueUsesTest, PushesIntoASumWhoseOtherOperandCarriesTheSame) {
  Set("b", {0});
  EXPECT_TRUE(MayPush("a"));
}

// What the sweep has settled counts, not what could have been.
TEST_F(ValueUsesTest, SettledOperandsAreAskedNotGuessed) {
  Set("v", {}, 1);
  Set("dxb", {});
  EXPECT_FALSE(MayPush("a"));
  Set("v", {});
  Set("dxb", {0});
  EXPECT_TRUE(MayPush("a"));
}

TEST_F(ValueUsesTest, NotPastAParameterCutOnTheAxis) {
  Set("v", {}, 1);
  Set("w", {}, 0);
  EXPECT_FALSE(MayPush("a"));
}

}  // namespace
}  // namespace mgc
