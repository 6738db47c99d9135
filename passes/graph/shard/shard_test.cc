#include "passes/graph/shard/shard.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/testing/shard_fixture.h"

namespace mgc {
namespace {

// What reports call a change of sharding is known where it is asked for: the update's resolves say
// so themselves, and what their operands need on the way goes by the same word.
TEST_F(ShardTest, ChangesSayWhatReportsCallThem) {
  Row("mlp", "tp");
  Row("batch", "dp");
  strategy_.storage = {{StoredKind::kStates, mesh_.Find("dp").AsSet()}};
  const absl::StatusOr<Graph> training = Differentiate(ReadGraph(R"(graph @g logical (
    param %w: f32[embed=4,mlp=8],
    data %x: f32[batch=4,seq=2,embed=4],
    data %weights: f32[batch=4,seq=2]
  ) {
    %y = matmul(%x, %w) {spec="b s k, k n -> b s n"}
    %z = matmul(%y, %w) {spec="b s n, k n -> b s k"}
    %loss = total(%z)
    %count = total(%weights)
    loss %loss weight 1.0
    report "count" = %count
  })"));
  ASSERT_TRUE(training.ok()) << training.status();
  const Graph graph = MustShard(*training);
  Lines labels;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "reshard") continue;
    labels.push_back(
        absl::StrCat(graph.value(node.outputs[0]).name, " ", node.attrs.Text("label")));
  }
  EXPECT_EQ(labels,
            (Lines{"w.to parameter", "z g", "loss/sum.next.to loss", "tokens/sum.next.to loss",
                   "loss_and_tokens.resolved loss", "w/grad.resolved gradient",
                   "w/grad.square.to norm", "grad_squares.resolved norm", "w.next parameter"}));
}

TEST_F(ShardTest, OwedSumsArePaidWhereTheyAreMade) {
  Row("mlp", "tp");
  const Graph graph = MustShard(R"(graph @g training (
    param %up: f32[embed=4,mlp=8],
    param %down: f32[mlp=8,embed=4],
    data %x: f32[rows=6,embed=4]
  ) {
    %h = matmul(%x, %up) {spec="b k, k n -> b n"}
    %y = matmul(%h, %down) {spec="b k, k n -> b n"}
    %z = gelu(%y)
    %t = total(%z)
    report "t" = %t
  })");
  EXPECT_EQ(Changes(graph), (Lines{"y: @m[-,-]+tp -> @m[-,-]"}));
  EXPECT_EQ(ShardingOf(graph, "h"), "@m[-,tp]");
}

// Terms that owe the same are summed first, what owes nothing joins behind the payment.
TEST_F(ShardTest, SumsArePaidOnce) {
  Row("mlp", "tp");
  const Graph graph = MustShard(R"(graph @g training (
    param %a: f32[mlp=8,embed=4],
    param %b: f32[mlp=8,embed=4],
    param %bias: f32[embed=4],
    data %h: f32[rows=6,mlp=8],
    data %r: f32[rows=6,embed=4]
  ) {
    %ya = matmul(%h, %a) {spec="b k, k n -> b n"}
    %yb = matmul(%h, %b) {spec="b k, k n -> b n"}
    %s = add(%r, %ya, %yb, %bias)
    %t = total(%s)
    report "t" = %t
  })");
  EXPECT_EQ(Changes(graph), (Lines{"s.part.to: @m[-,-]+tp -> @m[-,-]"}));
  EXPECT_EQ(Listing(graph),
            (Lines{"ya = matmul(h, a)", "yb = matmul(h, b)", "s.part = add(ya, yb)",
                   "s.part.to = reshard(s.part)", "s = add(s.part.to, r, bias)", "t = total(s)"}));
}

// The rule "lift": different owed sets are lifted to their union, which is free.
TEST_F(ShardTest, DifferentOwedSetsAreLifted) {
  Row("mlp", "tp");
  Row("other", "dp");
  const Graph graph = MustShard(R"(graph @g training (
    param %a: f32[mlp=8,embed=4],
    param %b: f32[other=8,embed=4],
    data %h: f32[rows=6,mlp=8],
    data %i: f32[rows=6,other=8]
  ) {
    %ya = matmul(%h, %a) {spec="b k, k n -> b n"}
    %yb = matmul(%i, %b) {spec="b k, k n -> b n"}
    %s = add(%ya, %yb)
    %t = total(%s)
    report "t" = %t
  })");
  EXPECT_EQ(Changes(graph),
            (Lines{"ya.to: @m[-,-]+tp -> @m[-,-]+tp*dp", "yb.to: @m[-,-]+dp -> @m[-,-]+tp*dp",
                   "s: @m[-,-]+tp*dp -> @m[-,-]"}));
}

// Whole operands are lifted only into a sum that stays owed.
TEST_F(ShardTest, WholeOperandsAreLiftedIntoWhatStaysOwed) {
  Row("mlp", "tp");
  const Graph graph = MustShard(R"(graph @g training (
    param %w: f32[embed=4],
    accumulator %w/grad: f32[embed=4] {of="w"},
    data %h: f32[mlp=8,embed=4],
    data %r: f32[embed=4]
  ) {
    %y = reduce_sum(%h) {dims=[0]} backward
    %s = add(%y, %r) backward
    %w/grad.next = accumulate(%w/grad, %s) backward
    %total = reshard(%w/grad.next) {pin=0} update
    assign %w/grad.next -> %w/grad
    assign %total -> %w
  })");
  EXPECT_EQ(Changes(graph), (Lines{"r.to: @m[-] -> @m[-]+tp", "total: @m[-]+tp -> @m[-]"}));
  EXPECT_EQ(ShardingOf(graph, "w/grad"), "@m[-]+tp");  // as what it collects
}

// An owed operand may lack leading dims: a row that is added to all.
TEST_F(ShardTest, OwedRowsAreAddedAsRows) {
  Row("mlp", "tp");
  constexpr char kProduct[] = "%y = matmul(%h, %w) {spec=\"b k, k n -> b n\"}\n";
  const auto changes = [&](const std::string& operands) {
    const std::string text = absl::StrCat(R"(graph @g training (
      param %w: f32[mlp=8,embed=4],
      data %r: f32[rows=6,embed=4],
      data %h: f32[rows=6,mlp=8],
      data %u: f32[mlp=8]
    ) {
      %row = matmul(%u, %w) {spec="k, k n -> n"}
      )",
                                          absl::StrContains(operands, "%y") ? kProduct : "",
                                          "      %s = add(", operands, R"()
      %t = total(%s)
      report "t" = %t
    })");
    return Changes(MustShard(text.c_str()));
  };
  EXPECT_EQ(changes("%r, %row"), (Lines{"row.to: @m[-]+tp -> @m[-]"}));
  EXPECT_EQ(changes("%y, %row"), (Lines{"s: @m[-,-]+tp -> @m[-,-]"}));
  EXPECT_EQ(changes("%r, %row, %y"), (Lines{"s.part.to: @m[-,-]+tp -> @m[-,-]"}));
}

// What one operand owes may cut another: an axis serves once.
TEST_F(ShardTest, OwedAxesDoNotCutTheSum) {
  Row("mlp", "tp");
  Row("other", "dp");
  Row("wide", "dp");
  const Graph graph = MustShard(R"(graph @g training (
    param %a: f32[mlp=8,wide=4],
    param %b: f32[other=8,narrow=4],
    data %h: f32[rows=6,mlp=8],
    data %i: f32[rows=6,other=8]
  ) {
    %ya = matmul(%h, %a) {spec="b k, k n -> b n"}
    %yb = matmul(%i, %b) {spec="b k, k n -> b n"}
    %s = add(%ya, %yb)
    %t = total(%s)
    report "t" = %t
  })");
  EXPECT_EQ(Changes(graph)[0], "ya.to: @m[-,dp]+tp -> @m[-,-]+tp*dp");
}

// The rule "claims": a parameter's gradient takes no axis in a dim that the parameter holds whole.
// The gathered gradient serves both tables.
TEST_F(ShardTest, DimsOfAParametersGradientAreClosed) {
  Row("vocab", "tp");
  SequenceRow();
  const Graph graph = MustShard(R"(graph @g training (
    param %word: f32[vocab=6,embed=4],
    param %position: f32[seq=8,embed=4],
    accumulator %word/grad: f32[vocab=6,embed=4] {of="word"},
    accumulator %position/grad: f32[seq=8,embed=4] {of="position"},
    data %ids: i64[batch=2,seq=8],
    data %dy: f32[batch=2,seq=8,embed=4]
  ) {
    %dword = lookup_grad(%word, %ids, %dy) backward
    %word/grad.next = accumulate(%word/grad, %dword) backward
    %dposition = reduce_sum(%dy) {dims=[0]} backward
    %position/grad.next = accumulate(%position/grad, %dposition) backward
    %w = reshard(%word/grad.next) {pin=0} update
    %p = reshard(%position/grad.next) {pin=0} update
    assign %word/grad.next -> %word/grad
    assign %position/grad.next -> %position/grad
    assign %w -> %word
    assign %p -> %position
  })");
  EXPECT_EQ(ShardingOf(graph, "dy"), "@m[-,tp,-]");
  EXPECT_EQ(Changes(graph)[0], "dy.to: @m[-,tp,-] -> @m[-,-,-]");
  EXPECT_EQ(ShardingOf(graph, "position/grad"), "@m[-,-]");
  EXPECT_EQ(ShardingOf(graph, "word/grad"), "@m[tp,-]");
}

// The rule "claims": where no operand says how, the residual stream is made as it is kept.
TEST_F(ShardTest, TheOutputsHomeClaimsLast) {
  SequenceRow();
  const Graph graph = MustShard(R"(graph @g training (
    param %word: f32[vocab=6,embed=4],
    data %ids: i64[batch=2,seq=8]
  ) {
    %x = lookup(%word, %ids)
    %t = total(%x)
    report "t" = %t
  })");
  EXPECT_EQ(ShardingOf(graph, "x"), "@m[-,tp,-]");
  EXPECT_EQ(Changes(graph)[0], "ids.to: @m[-,-] -> @m[-,tp]");  // a slice
}

// The rule "convert": one conversion serves all consumers in a layer and phase, none outside.
TEST_F(ShardTest, ConversionsAreSharedInsideASegmentOnly) {
  Row("mlp", "tp");
  SequenceRow();
  const Graph graph = MustShard(R"(graph @g training layers=2 (
    param %v: f32[embed=4,mlp=8],
    param %w: f32[embed=4,mlp=8],
    data %x: f32[batch=2,seq=8,embed=4]
  ) {
    %a = matmul(%x, %v) {spec="b s k, k n -> b s n"} layer 0
    %b = matmul(%x, %w) {spec="b s k, k n -> b s n"} layer 0
    %c = matmul(%x, %w) {spec="b s k, k n -> b s n"} layer 1
    %d = matmul(%x, %w) {spec="b s k, k n -> b s n"} backward layer 0
    %m = mul(%a, %b) layer 0
    %n = mul(%c, %c) layer 1
    %l = sum_squares(%m) layer 0
    %o = sum_squares(%n) layer 1
    %p = sum_squares(%d) backward layer 0
    %s = stack(%l, %o, %p) update
    %t = reshard(%s) {pin=0} update
    report "t" = %t
  })");
  const std::string gather = "@m[-,tp,-] -> @m[-,-,-]";
  const Lines changes = Changes(graph);
  ASSERT_GE(changes.size(), 3u);
  EXPECT_EQ(changes[0], "x.to: " + gather);
  EXPECT_EQ(changes[1], "x.to.2: " + gather);
  EXPECT_EQ(changes[2], "x.to.3: " + gather);
  for (size_t i = 3; i < changes.size(); ++i) EXPECT_FALSE(absl::StrContains(changes[i], "x.to"));
}

// A user's pin wins over every rule, and is an edge of its own: the value as produced keeps its
// home.
TEST_F(ShardTest, PinsWin) {
  Row("mlp", "tp");
  const Graph graph = MustShard(R"(graph @g training (
    param %up: f32[embed=4,mlp=8],
    data %x: f32[rows=6,embed=4]
  ) {
    %h = matmul(%x, %up) {spec="b k, k n -> b n"}
    %q = reshard(%h) {pin=1, sharding="dp,-"}
    %z = gelu(%q)
    %t = total(%z)
    %s = reshard(%t) {pin=0} update
    report "t" = %s
  })");
  EXPECT_EQ(ShardingOf(graph, "h"), "@m[-,tp]");
  EXPECT_EQ(ShardingOf(graph, "q"), "@m[dp,-]");
  EXPECT_EQ(ShardingOf(graph, "z"), "@m[dp,-]");
}

// The strategy's parts of an axis that needed no split: one is the axis, the other has one rank.
TEST_F(ShardTest, APinMayNamePartsOfAnAxisThatIsWhole) {
  strategy_.parts = {{"tp.0", mesh_.Find("tp")}, {"tp.1", {}}};
  const Graph graph = MustShard(R"(graph @g training (data %x: f32[rows=6,embed=4]) {
    %p = reshard(%x) {pin=1, sharding="tp.1,tp.0"}
    %q = reshard(%x) {pin=1, sharding="tp.0*tp.1,-"}
    %r = add(%p, %p)
    %t = total(%q)
    %u = total(%r)
    report "t" = %t
    report "u" = %u
  })");
  EXPECT_EQ(ShardingOf(graph, "p"), "@m[-,tp]");
  EXPECT_EQ(ShardingOf(graph, "q"), "@m[tp,-]");
}

TEST_F(ShardTest, APinThatDoesNotFitIsRefused) {
  const auto error = [&](const char* pin) {
    const std::string text = absl::StrCat(R"(graph @g training (data %x: f32[rows=6,embed=3]) {
      %q = reshard(%x) {pin=1, sharding=")",
                                          pin, R"("}
      %t = total(%q)
      report "t" = %t
    })");
    return std::string(Shard(ReadGraph(text), mesh_, strategy_).status().message());
  };
  EXPECT_TRUE(absl::StrContains(error("tp*tp,-"), "[sharding_c2]")) << error("tp*tp,-");
  EXPECT_TRUE(absl::StrContains(error("-,tp"), "[shard_c6]")) << error("-,tp");
  EXPECT_TRUE(absl::StrContains(error("tp"), "[sharding_c1]")) << error("tp");
  EXPECT_TRUE(absl::StrContains(error("-,-/dp"), "[shard_c2]")) << error("-,-/dp");
  EXPECT_TRUE(absl::StrContains(error("-,-+tp"), "[shard_c2]")) << error("-,-+tp");
  EXPECT_TRUE(absl::StrContains(error("tp.0,-"), "[sharding_c4]")) << error("tp.0,-");
  EXPECT_TRUE(absl::StrContains(error("data,-"), "[sharding_c4]")) << error("data,-");
  EXPECT_EQ(error("tp,-"), "");
  EXPECT_EQ(error("cp*tp,ep"), "");  // axes of one rank, which the mesh does not hold
}

// Gathered whole and cut again: the pieces of an uneven dim do not nest.
TEST_F(ShardTest, AnUnevenDimIsCutWhereTheStrategySaysSo) {
  Row("labels", "tp");
  const char* text = R"(graph @g training (
    param %table: f32[labels=5,embed=3],
    data %x: f32[batch=4,embed=3]
  ) {
    %z = matmul(%x, %table) {spec="b e, v e -> b v"}
    %e = gelu(%z)
    %t = total(%e)
    report "t" = %t
  })";
  EXPECT_TRUE(
      absl::StrContains(Shard(ReadGraph(text), mesh_, strategy_).status().message(), "[shard_c6]"));
  strategy_.uneven = {"labels"};
  const Graph graph = MustShard(text);
  EXPECT_EQ(ShardingOf(graph, "table"), "@m[tp,-]");
  EXPECT_EQ(ShardingOf(graph, "e"), "@m[-,tp]");
}

// An uneven dim is whole where it is merged with another.
TEST_F(ShardTest, AnUnevenDimIsMergedWhole) {
  Row("labels", "tp");
  strategy_.uneven = {"labels"};
  const Graph graph = MustShard(R"(graph @g training (param %table: f32[labels=5,embed=3]) {
    %flat = reshape(%table) {sizes=[15], names="_"}
    %t = total(%flat)
    report "t" = %t
  })");
  EXPECT_EQ(ShardingOf(graph, "flat"), "@m[-]");
}

}  // namespace
}  // namespace mgc
