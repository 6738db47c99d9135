#include "passes/graph/shard/idle_requests.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"
#include "passes/graph/shard/shard.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Labels = std::vector<std::string>;

constexpr char kMixer[] = R"(graph @mixer training (
  param %w: f32[channels=8,hidden=16],
  param %head: f32[hidden=16,mlp=4],
  data %x: f32[samples=4,channels=8]
) {
  %y = matmul(%x, %w) {spec="b k, k n -> b n"}
  %z = matmul(%y, %head) {spec="b k, k n -> b n"}
  %t = total(%z)
  report "t" = %t
})";

constexpr char kStream[] = R"(graph @stream training (
  param %w: f32[embed=8,mlp=16],
  data %x: f32[batch=4,seq=4,embed=8]
) {
  %y = matmul(%x, %w) {spec="b s k, k n -> b s n"}
  %t = total(%y)
  report "t" = %t
})";

ParallelConfig Config(int64_t tp, int64_t cp, int64_t dp) {
  ParallelConfig config;
  config.tp = tp;
  config.cp = cp;
  config.world_size = tp * cp * dp;
  return config;
}

Diagnostics IdleOf(const char* text, const ParallelConfig& config,
                   const StrategySpec& spec = DefaultStrategy()) {
  const Graph graph = ReadGraph(text);
  const absl::StatusOr<MeshStrategy> bound = BindStrategy(spec, config, SizesOf(graph));
  EXPECT_TRUE(bound.ok()) << bound.status();
  const absl::StatusOr<Sharded> sharded = Shard(graph, bound->mesh, bound->strategy);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  const absl::StatusOr<Diagnostics> idle = IdleRequests(sharded->graph, config, spec);
  EXPECT_TRUE(idle.ok()) << idle.status();
  return idle.ok() ? *idle : Diagnostics();
}

Labels LabelsOf(const Diagnostics& found) {
  Labels labels;
  for (const Diagnostic& diagnostic : found) labels.push_back(diagnostic.label);
  return labels;
}

TEST(IdleRequestsTest, WhatCutsIsNotIdle) {
  EXPECT_EQ(LabelsOf(IdleOf(kStream, Config(2, 2, 2))), Labels{});
  EXPECT_EQ(LabelsOf(IdleOf(kMixer, Config(2, 1, 1))), Labels{});  // the head has a dim mlp
  EXPECT_EQ(LabelsOf(IdleOf(kMixer, Config(1, 1, 1))), Labels{});
}

TEST(IdleRequestsTest, AnAxisThatCutsNothing) {
  EXPECT_EQ(LabelsOf(IdleOf(kMixer, Config(2, 2, 2))), (Labels{"shard_c3", "shard_c3"}));
  const std::string said = IdleOf(kMixer, Config(1, 2, 1)).ToString();
  EXPECT_EQ(said,
            "cp 2 cuts nothing, its ranks would all do the same: megatron gives it to seq; the "
            "model's dims are channels=8, hidden=16, mlp=4, samples=4 [shard_c3]; nearest legal: a "
            "--strategy with rows for the model's dims, or --allow-replicated");
}

// Each dim is named once, however it is written, and a long list ends.
TEST(IdleRequestsTest, DimsOfManyRows) {
  std::string rows = "row * { \"a#1\" -> cp }\nrow (\"a#1\", z) { \"a#1\" -> cp }\n";
  for (int i = 0; i < 14; ++i) rows += "row * { d" + std::to_string(i) + " -> cp }\n";
  const absl::StatusOr<StrategySpec> spec =
      ParseStrategy("strategy @many {\n" + rows + "}", "many.mgc");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string said = IdleOf(kMixer, Config(1, 2, 1), *spec).ToString();
  EXPECT_TRUE(absl::StrContains(said, "many gives it to \"a#1\", d0, d1, ")) << said;
  EXPECT_TRUE(absl::StrContains(said, "d10, ... and 3 more; ")) << said;
}

// A parameter that is only kept is cut, and every rank does all of the work.
TEST(IdleRequestsTest, ACutOfWhatNothingReadsIsIdle) {
  EXPECT_EQ(LabelsOf(IdleOf(R"(graph @g training (
    param %spare: f32[mlp=4] {train=0},
    data %x: f32[batch=4,channels=8]
  ) {
    %t = total(%x)
    report "t" = %t
  })",
                            Config(2, 1, 2))),
            Labels{"shard_c3"});
}

TEST(IdleRequestsTest, SequenceParallelismWithoutAStream) {
  ParallelConfig config = Config(2, 1, 1);
  config.sequence_parallel = true;
  const Diagnostics found = IdleOf(kMixer, config);
  EXPECT_EQ(LabelsOf(found), (Labels{"shard_c4"}));
  EXPECT_TRUE(absl::StrContains(found.ToString(), "nearest legal: no --sequence-parallel, a "));
  EXPECT_EQ(LabelsOf(IdleOf(kStream, config)), Labels{});
}

TEST(IdleRequestsTest, ZeroWithoutAStore) {
  const absl::StatusOr<StrategySpec> spec =
      ParseStrategy("strategy @bare { row * { samples -> dp } }", "bare.mgc");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ParallelConfig config = Config(1, 1, 2);
  config.zero = 1;
  const std::string said = IdleOf(kMixer, config, *spec).ToString();
  EXPECT_TRUE(absl::StrContains(said, "bare has no store of states that fits")) << said;
  EXPECT_TRUE(absl::StrContains(said,
                                "[shard_c5]; nearest legal: zero 0, a --strategy with a store of "
                                "states over dp, or --allow-replicated"))
      << said;
  config.world_size = 1;
  EXPECT_EQ(LabelsOf(IdleOf(kMixer, config, *spec)), Labels{});
}

// A strategy of ZeRO-1 does not make do for a higher level in silence.
TEST(IdleRequestsTest, ZeroOfAHigherLevelThanTheStores) {
  constexpr char kStep[] = R"(graph @g training (
    param %w: f32[mlp=4],
    accumulator %w/grad: f32[mlp=4] {of="w"},
    state %w/m: f32[mlp=4] {of="w"},
    data %x: f32[batch=4,mlp=4]
  ) {
    %y = mul(%x, %w)
    %dw: f32[mlp=4] of %w = reduce_sum(%x) {dims=[0]} backward
    %w/grad.next = accumulate(%w/grad, %dw) backward
    assign %w/grad.next -> %w/grad
    %t = total(%y)
    report "t" = %t
  })";
  std::string text = "strategy @some { row * { batch -> dp } store states -> dp when zero";
  ParallelConfig config = Config(1, 1, 2);
  config.zero = 3;
  for (const char* missing : {"gradients", "parameters", ""}) {
    const absl::StatusOr<StrategySpec> spec = ParseStrategy(text + "}", "some.mgc");
    ASSERT_TRUE(spec.ok()) << spec.status();
    const std::string said = IdleOf(kStep, config, *spec).ToString();
    EXPECT_EQ(absl::StrContains(said, "shard_c5"), *missing != '\0') << said;
    EXPECT_TRUE(absl::StrContains(said, missing)) << said;
    absl::StrAppend(&text, " store ", missing, " -> dp when zero2");
  }
}

}  // namespace
}  // namespace mgc
