#include "passes/graph/shard/axis_uses.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"
#include "passes/graph/differentiate.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

constexpr char kRows[] = R"(strategy @rows {
  row * { batch -> dp, mlp -> tp }
  store states -> dp when zero
})";

constexpr char kProducts[] = R"(
    %h = matmul(%x, %up) {spec="b k, k n -> b n"} layer 0
    %y = matmul(%h, %down) {spec="b k, k n -> b n"} layer 0
    %z = add(%y, %bias) layer 0)";

// A model of three parameters that makes %z.
Graph Training(absl::string_view makes_z) {
  const std::string text = absl::StrCat(R"(graph @g logical layers=1 (
    param %up: f32[embed=4,mlp=8],
    param %down: f32[mlp=8,embed=4],
    param %bias: f32[embed=4],
    data %x: f32[batch=4,embed=4]
  ) {)",
                                        makes_z, R"(
    %loss = total(%z) layer 0
    %count = total(%x) layer 0
    loss %loss weight 1.0
    report "count" = %count
  })");
  absl::StatusOr<Graph> training = Differentiate(ReadGraph(text));
  EXPECT_TRUE(training.ok()) << training.status();
  return training.ok() ? *std::move(training) : Graph();
}

// `cuts mlp by row * { mlp -> tp }: up, down`, for what tp 2 or dp 2 does to the values of a kind.
Lines Uses(const Graph& training, absl::string_view strategy, absl::string_view axis,
           ValueKind kind) {
  ParallelConfig config;
  config.tp = 2;
  config.world_size = 4;
  config.zero = 1;
  const absl::StatusOr<StrategySpec> spec = ParseStrategy(strategy, "rows.mgc");
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return {};
  const MeshStrategy bound = *BindStrategy(*spec, config, SizesOf(training));
  ShardRecord record;
  const absl::StatusOr<Sharded> sharded = Shard(training, bound.mesh, bound.strategy, &record);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  if (!sharded.ok()) return {};
  Lines lines;
  for (const AxisUse& use : AxisUsesOf(training, *sharded, bound.strategy, record)) {
    if (use.axis != axis || use.kind != kind) continue;
    lines.push_back(absl::StrCat(WordOf(use.effect), " ", use.dim, use.dim.empty() ? "" : " ",
                                 "by ", use.by, ": ", absl::StrJoin(use.names, ", ")));
    EXPECT_EQ(static_cast<size_t>(use.count), use.names.size() + static_cast<size_t>(use.more));
  }
  return lines;
}

// An origin per axis: what follows from a parameter's cut names the row of the parameter.
TEST(AxisUsesTest, EveryAxisSaysWhatItCutsAndWho) {
  const Graph training = Training(kProducts);
  EXPECT_EQ(Uses(training, kRows, "tp", ValueKind::kParameters),
            (Lines{"cuts mlp by row * { mlp -> tp }: up, down",
                   "leaves by no row gives it a dim of theirs: bias"}));
  EXPECT_EQ(Uses(training, kRows, "tp", ValueKind::kStates),
            (Lines{"cuts mlp by row * { mlp -> tp }: up/m, up/v, down/m, down/v",
                   "leaves by no store gives it pieces of theirs: bias/m, bias/v"}));
  EXPECT_EQ(Uses(training, kRows, "tp", ValueKind::kActivations),
            (Lines{"cuts mlp by row * { mlp -> tp }: h", "sums by row * { mlp -> tp }: y",
                   "leaves by no row gives it a dim of theirs: x, z"}));
  EXPECT_EQ(Uses(training, kRows, "tp", ValueKind::kGradients),
            (Lines{"cuts mlp by row * { mlp -> tp }: down.grad, up.grad",
                   "leaves by no row gives it a dim of theirs: bias.grad"}));
  EXPECT_EQ(Uses(training, kRows, "dp", ValueKind::kGradients),
            (Lines{"sums by row * { batch -> dp }: bias.grad, down.grad, up.grad"}));
  EXPECT_EQ(Uses(training, kRows, "dp", ValueKind::kStates),
            (Lines{"stores by store states -> dp when zero: up/m, up/v, down/m, down/v, bias/m, "
                   "bias/v"}));
}

// Nothing that a row asks to be cut stays whole in silence.
TEST(AxisUsesTest, WhatStaysWholeAlthoughAskedSaysWhy) {
  const auto kept = [](absl::string_view on_the_way) {
    const std::string makes_z =
        absl::StrCat(R"(%h = matmul(%x, %up) {spec="b k, k n -> b n"} layer 0
          %q = )",
                     on_the_way, R"( layer 0
          %y = matmul(%q, %down) {spec="b k, k n -> b n"} layer 0
          %z = add(%y, %bias) layer 0)");
    Lines lines;
    for (std::string& line : Uses(Training(makes_z), kRows, "tp", ValueKind::kActivations)) {
      if (absl::StartsWith(line, "keeps")) lines.push_back(std::move(line));
    }
    return lines;
  };
  EXPECT_EQ(kept("softmax(%h)"),
            (Lines{"keeps mlp by row * { mlp -> tp }, but softmax needs it whole: q"}));
  EXPECT_EQ(kept("reshard(%h) {pin=1, sharding=\"-,-\"}"),
            (Lines{"keeps mlp by row * { mlp -> tp }, but a pin says -,-: q"}));
  EXPECT_EQ(kept("gelu(%h)"), Lines());
}

TEST(AxisUsesTest, APinAndAnEarlierRowDecide) {
  const Graph training = Training(R"(
    %h = matmul(%x, %up) {spec="b k, k n -> b n"} layer 0
    %q = reshard(%h) {pin=1, sharding="tp,-"} layer 0
    %g = gelu(%q) layer 0
    %y = matmul(%g, %down) {spec="b k, k n -> b n"} layer 0
    %z = add(%y, %bias) layer 0)");
  EXPECT_EQ(Uses(training, R"(strategy @rows {
    row * in "up" { mlp -> - }
    row * { batch -> dp, mlp -> tp }
  })",
                 "tp", ValueKind::kParameters),
            (Lines{"cuts mlp by row * { mlp -> tp }: down",
                   "leaves by no row gives it a dim of theirs: bias",
                   "leaves mlp by row * in \"up\" { mlp -> - }: up"}));
  EXPECT_EQ(
      Uses(training, kRows, "tp", ValueKind::kActivations),
      (Lines{"cuts batch by pin tp,-: q, g", "cuts mlp by row * { mlp -> tp }: h",
             "sums by row * { mlp -> tp }: y", "leaves by no row gives it a dim of theirs: x, z"}));
}

}  // namespace
}  // namespace mgc
