#include "passes/graph/shard/check_rows.h"

#include <string>

#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

// What the rows of a strategy, tp 4 and cp 2 come to.
std::string Violations(const char* rows, const char* graph) {
  const absl::StatusOr<StrategySpec> spec =
      ParseStrategy(std::string("strategy @s {\n") + rows + "\n}\n", "s.mgc");
  EXPECT_TRUE(spec.ok()) << spec.status();
  ParallelConfig config;
  config.tp = 4;
  config.cp = 2;
  config.world_size = 8;
  config.sequence_parallel = true;
  const absl::StatusOr<MeshStrategy> bound = BindStrategy(*spec, config, {});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return CheckRows(ReadGraph(graph), bound->strategy, bound->mesh).ToString();
}

// All of them, each with what would be legal: the size, the ranks, unequal pieces.
TEST(CheckRowsTest, AllSizesThatTheirAxesDoNotDivide) {
  EXPECT_EQ(Violations("row * { mlp -> tp, wide -> tp }", R"(graph @g training (
              param %even: f32[mlp=8],
              param %odd: f32[embed=3,mlp=10],
              param %odd2: f32[mlp=10],
              param %other: f32[wide=6],
              param %one: f32[wide=1]
            ) {})"),
            "%odd: tp 4 does not divide dim mlp of f32[embed=3,mlp=10] and of 1 other value, which "
            "`row * { mlp -> tp }` cuts [shard_c6]; nearest legal: mlp=8, 12, or tp 1, or `uneven "
            "mlp` in the strategy\n"
            "%other: tp 4 does not divide dim wide of f32[wide=6], which `row * { wide -> tp }` "
            "cuts [shard_c6]; nearest legal: wide=4, 8, or tp 1, or `uneven wide` in the strategy\n"
            "%one: tp 4 does not divide dim wide of f32[wide=1], which `row * { wide -> tp }` cuts "
            "[shard_c6]; nearest legal: wide=4, or tp 1, or `uneven wide` in the strategy");
  EXPECT_EQ(Violations("row * { mlp -> tp }", "graph @g training (param %w: f32[mlp=6]) {}"),
            "%w: tp 4 does not divide dim mlp of f32[mlp=6], which `row * { mlp -> tp }` cuts "
            "[shard_c6]; nearest legal: mlp=4, 8, or tp 3, 6, or `uneven mlp` in the strategy");
}

TEST(CheckRowsTest, UnequalPiecesAreAskedFor) {
  const char* graph = "graph @g training (param %a: f32[labels=5], param %b: f32[mlp=5%2]) {}";
  EXPECT_EQ(Violations("uneven labels\nrow * { labels -> tp, mlp -> tp }", graph), "");
  EXPECT_NE(Violations("row * { labels -> tp, mlp -> tp }", graph), "");
}

// What may be cut unevenly does not bound how many ranks an axis may have.
TEST(CheckRowsTest, TheHintIsNotBoundByUnevenDims) {
  const char* graph = "graph @g training (param %a: f32[labels=5], param %b: f32[mlp=6]) {}";
  EXPECT_EQ(Violations("uneven labels\nrow * { labels -> tp, mlp -> tp }", graph),
            "%b: tp 4 does not divide dim mlp of f32[mlp=6], which `row * { mlp -> tp }` cuts "
            "[shard_c6]; nearest legal: mlp=4, 8, or tp 3, 6, or `uneven mlp` in the strategy");
}

// Of forward values a slice may stay as it is made, but not all that a row brings home.
TEST(CheckRowsTest, ARowThatCouldBringNothingHome) {
  const char* rows = "row (batch, my_seq, embed) home when sequence_parallel { my_seq -> cp*tp }";
  const auto graph = [](const char* size) {
    return std::string("graph @g training (param %w: f32[embed=3], data %x: f32[batch=2,my_seq=") +
           size + R"(]) {
      %y = broadcast(%x) {dims=[2], sizes=[3], names="embed"}
      %z = slice(%y) {dim=1, begin=0, end=3}
      %t = total(%z)
      report "t" = %t
    })";
  };
  EXPECT_EQ(Violations(rows, graph("16").c_str()), "");
  const std::string said = Violations(rows, graph("12").c_str());
  EXPECT_EQ(said,
            "%y: tp-cp 8 does not divide dim my_seq of f32[batch=2,my_seq=12,embed=3], which `row "
            "(batch, my_seq, embed) home when sequence_parallel { my_seq -> cp*tp }` cuts "
            "[shard_c6]; nearest legal: my_seq=8, 16, or `uneven my_seq` in the strategy\n"
            "%z: tp-cp 8 does not divide dim my_seq of f32[batch=2,my_seq=3,embed=3], which `row "
            "(batch, my_seq, embed) home when sequence_parallel { my_seq -> cp*tp }` cuts "
            "[shard_c6]; nearest legal: my_seq=8, or `uneven my_seq` in the strategy");
}

TEST(CheckTilesTest, WhatARankHoldsIsBounded) {
  const auto said = [](const char* text) { return CheckTiles(ReadGraph(text)).ToString(); };
  EXPECT_EQ(said("mesh @m [tp=2]\n"
                 "graph @g sharded (data %x: f32[rows=2199023255552,cols=4] @m[-,tp]) {}"),
            "");
  EXPECT_EQ(said("mesh @m [tp=2]\n"
                 "graph @g sharded (data %x: f32[rows=2199023255553,cols=4] @m[-,tp]) {}"),
            "%x: a rank holds 4398046511106 elements of f32[rows=2199023255553,cols=4], more than "
            "2^42 [T3]");
}

}  // namespace
}  // namespace mgc
