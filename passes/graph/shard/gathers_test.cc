#include "passes/graph/shard/gathers.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "passes/graph/shard/testing/shard_fixture.h"

namespace mgc {
namespace {

using GathersTest = ShardTest;

// A seeded axis that an op has to gather away is no error, but worth a line; heads are.
TEST_F(GathersTest, GatheredAxesAreNoted) {
  Row("mlp", "tp");
  MustShard(R"(graph @g training (
    param %w: f32[mlp=8],
    data %x: f32[rows=6,mlp=8]
  ) {
    %n, %r = rms_norm(%x, %w) {eps=0.1}
    %t = total(%n)
    report "t" = %t
  })");
  ASSERT_FALSE(notes_.empty());
  EXPECT_EQ(notes_[0], "rms_norm gathers dim mlp of %x over tp");
  Row("heads", "tp");
  const absl::StatusOr<Sharded> refused = Shard(ReadGraph(R"(graph @g training (
    param %w: f32[heads=8],
    data %x: f32[rows=6,heads=8]
  ) {
    %n, %r = rms_norm(%x, %w) {eps=0.1}
    %t = total(%n)
    report "t" = %t
  })"),
                                                mesh_, strategy_);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "[shard_c1]")) << refused.status();
}

// Equal layers say so once, and a dim without a name goes by its number.
TEST_F(GathersTest, NotesOfEqualLayersAreOne) {
  strategy_.rows.push_back({{"", "mlp"}, {{"mlp", mesh_.Find("tp")}}});
  MustShard(R"(graph @g training layers=2 (
    param %layers.0.w: f32[mlp=8],
    param %layers.1.w: f32[mlp=8],
    data %x: f32[6,mlp=8],
    data %y: f32[6,8]
  ) {
    %layers.0.n, %layers.0.r = rms_norm(%x, %layers.0.w) {eps=0.1} layer 0
    %layers.0.p = reshard(%layers.0.n) {pin=1, sharding="-,tp"} layer 0
    %layers.0.q, %layers.0.s = rms_norm(%layers.0.p, %layers.0.w) {eps=0.1} layer 0
    %layers.1.n, %layers.1.r = rms_norm(%layers.0.q, %layers.1.w) {eps=0.1} layer 1
    %layers.1.p = reshard(%layers.1.n) {pin=1, sharding="-,tp"} layer 1
    %layers.1.q, %layers.1.s = rms_norm(%layers.1.p, %layers.1.w) {eps=0.1} layer 1
    %t = total(%layers.1.q)
    %u = reshard(%y) {pin=1, sharding="-,tp"}
    %v = softmax(%u)
    %z = total(%v)
    report "t" = %t
    report "z" = %z
  })");
  EXPECT_EQ(notes_, (Lines{"rms_norm gathers dim mlp of %x over tp",
                           "rms_norm gathers dim mlp of %layers.*.p over tp",
                           "softmax gathers dim 1 of %u over tp"}));
}

}  // namespace
}  // namespace mgc
