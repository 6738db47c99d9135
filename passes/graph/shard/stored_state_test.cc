// How the optimizer's state and the gradients' norm are laid out, with ZeRO and without.

#include "gtest/gtest.h"
#include "passes/graph/shard/testing/shard_fixture.h"

namespace mgc {
namespace {

using StoredStateTest = ShardTest;

// The update of %a, cut over dp, and of %b, which all data-parallel ranks hold.
constexpr char kUpdate[] = R"(graph @g training (
  param %a: f32[expert=4,embed=4],
  param %b: f32[embed=4,out=3],
  accumulator %a/grad: f32[expert=4,embed=4] {of="a"},
  accumulator %b/grad: f32[embed=4,out=3] {of="b"},
  state %a/m: f32[expert=4,embed=4] {of="a"},
  state %a/v: f32[expert=4,embed=4] {of="a"},
  state %b/m: f32[embed=4,out=3] {of="b"},
  state %b/v: f32[embed=4,out=3] {of="b"},
  scalar %u: f64[],
  data %x: f32[batch=6,embed=4],
  data %y: f32[batch=6,out=3],
  data %z: f32[expert=4,embed=4]
) {
  %da = scale(%z) {value=1.0} backward
  %a/grad.next = accumulate(%a/grad, %da) backward
  %db = matmul(%x, %y) {spec="b k, b n -> k n"} backward
  %b/grad.next = accumulate(%b/grad, %db) backward
  %ga: f32[expert=4,embed=4] of %a = reshard(%a/grad.next) {pin=0} update
  %gb: f32[embed=4,out=3] of %b = reshard(%b/grad.next) {pin=0} update
  %sa = sum_squares(%ga) update
  %sb = sum_squares(%gb) update
  %norm = stack(%sa, %sb) update
  %n = reshard(%norm) {pin=0} update
  %as, %am, %av = adamw(%a, %ga, %a/m, %a/v, %u, %u, %u, %u, %u, %u, %u, %u) {decay=0} update
  %bs, %bm, %bv = adamw(%b, %gb, %b/m, %b/v, %u, %u, %u, %u, %u, %u, %u, %u) {decay=0} update
  %a.next = reshard(%as) {pin=0} update
  %b.next = reshard(%bs) {pin=0} update
  assign %a/grad.next -> %a/grad
  assign %b/grad.next -> %b/grad
  assign %a.next -> %a
  assign %am -> %a/m
  assign %av -> %a/v
  assign %b.next -> %b
  assign %bm -> %b/m
  assign %bv -> %b/v
  report "n" = %n
})";

// ZeRO stores a parameter and its state in pieces over those data axes that do not cut it anyway.
TEST_F(StoredStateTest, ParameterAndStateAreStoredOverAxesThatDoNotCutThem) {
  Row("batch", "dp");
  Row("expert", "dp");
  strategy_.storage = {{StoredKind::kStates, mesh_.Find("dp").AsSet()}};
  const Graph graph = MustShard(kUpdate);
  EXPECT_EQ(ShardingOf(graph, "a/m"), "@m[dp,-]");
  EXPECT_EQ(ShardingOf(graph, "b/m"), "@m[-,-]/dp");
  EXPECT_EQ(ShardingOf(graph, "gb"), "@m[-,-]/dp");
  EXPECT_EQ(ShardingOf(graph, "b"), "@m[-,-]/dp");
  EXPECT_EQ(ShardingOf(graph, "b.next"), "@m[-,-]/dp");
  // The norm counts every element once: each entry is owed where its gradient is in pieces.
  EXPECT_EQ(ShardingOf(graph, "sa"), "@m[]+dp");
  EXPECT_EQ(ShardingOf(graph, "sb"), "@m[]+dp");
  EXPECT_EQ(ShardingOf(graph, "norm"), "@m[-]+dp*pp");
}

// ZeRO-2 sums a gradient into the pieces of its parameter before it is collected.
TEST_F(StoredStateTest, GradientsAreCollectedInPiecesWhereTheParameterHasSome) {
  Row("batch", "dp");
  Row("expert", "dp");
  const AxisSet axes = mesh_.Find("dp").AsSet();
  strategy_.storage = {{StoredKind::kStates, axes}, {StoredKind::kGradients, axes}};
  const Graph graph = MustShard(kUpdate);
  EXPECT_EQ(ShardingOf(graph, "da"), "@m[dp,-]");
  EXPECT_EQ(ShardingOf(graph, "a/grad"), "@m[dp,-]");
  EXPECT_EQ(ShardingOf(graph, "db"), "@m[-,-]+dp");
  EXPECT_EQ(ShardingOf(graph, "db.to"), "@m[-,-]/dp");
  EXPECT_EQ(ShardingOf(graph, "b/grad"), "@m[-,-]/dp");
  EXPECT_EQ(ShardingOf(graph, "gb"), "@m[-,-]/dp");
}

TEST_F(StoredStateTest, WithoutStorageTheNormCountsReplicasOnce) {
  Row("batch", "dp");
  Row("expert", "dp");
  const Graph graph = MustShard(kUpdate);
  EXPECT_EQ(ShardingOf(graph, "b/m"), "@m[-,-]");
  EXPECT_EQ(ShardingOf(graph, "sb"), "@m[]");
  EXPECT_EQ(ShardingOf(graph, "norm"), "@m[-]+dp*pp");
  bool lifted = false;  // to coordinate 0 of dp, as %sa owes it
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "reshard" || graph.value(node.inputs[0]).name != "sb") continue;
    lifted = true;
    EXPECT_EQ(ToString(graph.sharding(node.outputs[0]), mesh_), "@m[]+dp*pp");
  }
  EXPECT_TRUE(lifted);
}

}  // namespace
}  // namespace mgc
