#include "graph/ir/check.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph Parse(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, "t");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::vector<std::string> LabelsOf(absl::string_view text) {
  std::vector<std::string> labels;
  for (const Diagnostic& violation : FindViolations(Parse(text))) {
    labels.push_back(violation.label);
  }
  return labels;
}

// One matrix product with its loss, at every level; the tests change a line.
constexpr char kLogical[] = R"(graph @g logical layers=2 (
  param %w: f32[embed=6,mlp=4] {init="normal", std=0.02},
  data %x: f32[batch=8,embed=6]
) {
  %h = matmul(%x, %w) {spec="b k, k n -> b n"} layer 0 at "m.cc":3:1
  %l = total(%h) layer 2
  loss %l weight 1.0
})";

constexpr char kTraining[] = R"(graph @g training layers=2 (
  param %w: f32[4],
  data %x: f32[4],
  accumulator %w/grad: f32[4] {of="w"},
  state %w/m: f32[4] {of="w"}
) {
  %y = mul(%x, %w) layer 0
  %w.grad = mul(%y, %x) backward layer 0
  %w/grad.next = accumulate(%w/grad, %w.grad) backward layer 0
  %w.next = sub(%w, %w/grad.next) update
  %m.next = sub(%w/m, %w/grad.next) update
  assign %w/grad.next -> %w/grad
  assign %w.next -> %w
  assign %m.next -> %w/m
})";

constexpr char kSharded[] = R"(mesh @m [tp=2, dp=2]
graph @g sharded (
  param %w: f32[embed=6,mlp=4] @m[-,tp],
  param %v: f32[mlp=4,embed=6] @m[tp,-],
  data %x: f32[batch=8,embed=6] @m[dp,-]
) {
  %h: f32[8,4] @m[dp,tp] = matmul(%x, %w) {spec="b k, k n -> b n"}
  %y.part: f32[8,6] @m[dp,-]+tp = matmul(%h, %v) {spec="b k, k n -> b n"}
  %y: f32[8,6] @m[dp,-] = reshard(%y.part)
  %z: f32[8,6] @m[dp,-] = add(%y, %x)
  %m: f32[8] @m[dp]^tp = reduce_max(%h) {dims=[1]}
})";

constexpr char kLocal[] = R"(mesh @m [tp=2, dp=2]
graph @g local (
  data %x: f32[batch=8,embed=4] @m[dp,-],
  param %w: f32[embed=4] @m[-]
) {
  %p: f32[8] @m[dp] = reduce_sum(%x) {dims=[1]}
  %q: f32[4] @m[-]+dp = reduce_sum(%x) {dims=[0]}
  %a: f32[4] @m[-] = all_reduce(%q)
  %b: f32[4] @m[tp] = shard_slice(%w)
  %c: f32[4] @m[-] = all_gather(%b)
  %d: f32[4] @m[dp] = reduce_scatter(%q)
  %e: f32[8,4] @m[-,dp] = all_to_all(%x)
  %f: f32[4] @m[-]+dp = lift(%w)
  %g: f32[4] @m[-]/tp = shard_slice(%w)
})";

// `text` with one occurrence of `from` replaced; a test that replaces nothing fails.
std::string With(absl::string_view text, absl::string_view from, absl::string_view to) {
  EXPECT_NE(text.find(from), absl::string_view::npos) << from;
  return absl::StrReplaceAll(text, {{from, to}});
}

TEST(CheckTest, SoundGraphsPass) {
  EXPECT_THAT(LabelsOf(kLogical), IsEmpty());
  EXPECT_THAT(LabelsOf(kTraining), IsEmpty());
  EXPECT_THAT(LabelsOf(kSharded), IsEmpty());
  EXPECT_THAT(LabelsOf(kLocal), IsEmpty());
  EXPECT_TRUE(CheckGraph(Parse(kLogical)).ok());
}

TEST(CheckTest, LogicalGraphsHaveNoShardingAndNoBackward) {
  const std::string sharded = absl::StrCat("mesh @m [dp=2]\n", kLogical);
  EXPECT_THAT(LabelsOf(With(sharded, "data %x: f32[batch=8,embed=6]",
                            "data %x: f32[batch=8,embed=6] @m[dp,-]")),
              ElementsAre("logical_c1"));
  EXPECT_THAT(LabelsOf(With(kLogical, "layer 2", "layer 2 backward")), ElementsAre("logical_c2"));
  EXPECT_THAT(LabelsOf(With(kLogical, "loss %l", "loss %h")), ElementsAre("logical_c3"));
  EXPECT_THAT(LabelsOf(With(kLogical, "weight 1.0", "weight nan")), ElementsAre("logical_c3"));
  EXPECT_THAT(LabelsOf(With(kLogical, "total(%h)", "total(%h)\n%a = all_reduce(%h)")),
              ElementsAre("logical_c4"));
  EXPECT_THAT(LabelsOf(With(kLogical, "data %x: f32[batch=8,embed=6]",
                            "data %x: f32[8,6],\nstate %s: f32[1] {of=\"w\"}")),
              ElementsAre("logical_c5"));
  EXPECT_THAT(LabelsOf(With(kLogical, "loss %l", "assign %x -> %x\nloss %l")),
              ElementsAre("logical_c6"));
}

TEST(CheckTest, LayersAndPhasesFollowTheData) {
  EXPECT_THAT(LabelsOf(With(kLogical, "layer 2", "layer 3")), ElementsAre("graph_c5"));
  EXPECT_THAT(LabelsOf(With(kLogical, "layer 2", "layer embedding")), ElementsAre("graph_c5"));
  EXPECT_THAT(LabelsOf(With(kTraining, "%w.grad) backward", "%w.grad) forward")),
              ElementsAre("graph_c6"));
  EXPECT_THAT(LabelsOf(With(kTraining, "%w.grad =", "%w.grad: f32[4] of %x =")), IsEmpty());
  EXPECT_THAT(LabelsOf(With(kLogical, "%l =", "%l: f64[] of %x =")), ElementsAre("graph_c6"));
}

TEST(CheckTest, AssignmentsFitTheirInputs) {
  EXPECT_THAT(LabelsOf(With(kTraining, "assign %w.next -> %w",
                            "assign %w.next -> %w\nassign %m.next -> %w")),
              ElementsAre("graph_c4"));
  EXPECT_THAT(
      LabelsOf(With(With(kTraining, "data %x: f32[4]", "data %x: f32[4], scalar %s: f64[]"),
                    "assign %w.next -> %w\n", "assign %w.next -> %w\nassign %m.next -> %s\n")),
      ElementsAre("graph_c4"));
}

TEST(CheckTest, TrainingGraphsUpdateWhatTheyAccumulate) {
  EXPECT_THAT(LabelsOf(With(kTraining, "assign %w/grad.next -> %w/grad\n", "")),
              ElementsAre("training_c3"));
  EXPECT_THAT(LabelsOf(With(kTraining, "assign %w/grad.next", "assign %w.grad")),
              ElementsAre("training_c3"));
  EXPECT_THAT(LabelsOf(With(kTraining, "assign %w.next -> %w\n", "")), ElementsAre("training_c4"));
  EXPECT_THAT(LabelsOf(With(kTraining, "accumulator %w/grad: f32[4] {of=\"w\"}",
                            "accumulator %w/grad: f32[4] {of=\"loss\"}")),
              ElementsAre("training_c4"));
  EXPECT_THAT(LabelsOf(With(kTraining, "assign %m.next -> %w/m", "")), ElementsAre("training_c5"));
  EXPECT_THAT(LabelsOf(With(kTraining, "w/m: f32[4] {of=\"w\"}", "w/m: f32[4] {of=\"x\"}")),
              ElementsAre("training_c5"));
}

TEST(CheckTest, ShardedGraphsAreLaidOutByTheirRules) {
  EXPECT_THAT(LabelsOf(With(kSharded, "%z: f32[8,6] @m[dp,-]", "%z: f32[8,6]")),
              ElementsAre("sharded_c1"));
  EXPECT_THAT(LabelsOf(With(kSharded, "reshard(%y.part)", "all_reduce(%y.part)")),
              ElementsAre("sharded_c2"));
}

TEST(CheckTest, OperandsCutFactorsAlike) {
  // k is whole in one operand and cut in the other.
  EXPECT_THAT(
      LabelsOf(With(kSharded, "%v: f32[mlp=4,embed=6] @m[tp,-]", "%v: f32[mlp=4,embed=6] @m[-,-]")),
      ElementsAre("sharded_c3"));
  // One axis for two factors.
  EXPECT_THAT(LabelsOf(With(kSharded, "%w: f32[embed=6,mlp=4] @m[-,tp]",
                            "%w: f32[embed=6,mlp=4] @m[-,dp]")),
              ElementsAre("sharded_c3"));
}

TEST(CheckTest, ResultsFollow) {
  EXPECT_THAT(LabelsOf(With(kSharded, "%z: f32[8,6] @m[dp,-]", "%z: f32[8,6] @m[-,-]")),
              ElementsAre("sharded_c4"));
  EXPECT_THAT(
      LabelsOf(With(kSharded, "%y.part: f32[8,6] @m[dp,-]+tp", "%y.part: f32[8,6] @m[dp,-]")),
      ElementsAre("sharded_c5"));
  EXPECT_THAT(LabelsOf(With(kSharded, "@m[dp]^tp", "@m[dp]+tp")), ElementsAre("sharded_c5"));
}

TEST(CheckTest, SumsStayOwedThroughLinearOpsOnly) {
  const auto behind = [](absl::string_view lines) {
    return LabelsOf(With(kSharded, "  %z:", absl::StrCat(lines, "\n  %z:")));
  };
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = scale(%y.part) {value=2}"), IsEmpty());
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-] = scale(%y.part) {value=2}"),
              ElementsAre("sharded_c5"));
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = gelu(%y.part)"), ElementsAre("sharded_c5"));
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = mul(%y.part, %y.part)"),
              ElementsAre("sharded_c5"));
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = mul(%y.part, %y)"), IsEmpty());
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = add(%y.part, %y.part)"), IsEmpty());
  EXPECT_THAT(behind("%a: f32[8,6] @m[dp,-]+tp = add(%y.part, %y)"), ElementsAre("sharded_c5"));
  // The sum owed over tp would also be what cuts the product's other factor.
  EXPECT_THAT(behind("%a: f32[8,4] @m[dp,tp] = matmul(%y.part, %w) {spec=\"b k, k n -> b n\"}"),
              ElementsAre("sharded_c5"));
}

TEST(CheckTest, StoragePiecesAreCutAlike) {
  const auto behind = [](absl::string_view lines) {
    return LabelsOf(
        With(kSharded,
             "  %z:", absl::StrCat("%s: f32[6,4] @m[-,tp]/dp = reshard(%w)\n", lines, "\n  %z:")));
  };
  EXPECT_THAT(behind("%a: f32[6,4] @m[-,tp]/dp = scale(%s) {value=2}"), IsEmpty());
  EXPECT_THAT(behind("%a: f32[6,4] @m[-,tp] = scale(%s) {value=2}"), ElementsAre("sharded_c3"));
  EXPECT_THAT(behind("%a: f32[6,4] @m[-,tp]/dp = sub(%s, %w)"), ElementsAre("sharded_c3"));
  EXPECT_THAT(behind("%a: f64[] @m[]+tp*dp = sum_squares(%s)"), IsEmpty());
  EXPECT_THAT(behind("%a: f64[] @m[]+tp = sum_squares(%s)"), ElementsAre("sharded_c5"));
}

TEST(CheckTest, EndsOweNothing) {
  EXPECT_THAT(LabelsOf(With(kSharded, "%z:", "assign %y.part -> %x\n%z:")),
              ElementsAre("sharded_c6"));
  EXPECT_THAT(LabelsOf(With(kSharded, "%z:", "report %y.part\n%z:")), ElementsAre("sharded_c6"));
  EXPECT_THAT(LabelsOf(With(kSharded, "%x: f32[batch=8,embed=6] @m[dp,-]",
                            "%x: f32[batch=8,embed=6] @m[dp,-],\ndata %u: f32[1] @m[-]+tp")),
              ElementsAre("sharded_c5"));
}

TEST(CheckTest, CollectivesDoExactlyTheirJob) {
  EXPECT_THAT(LabelsOf(With(kLocal, "all_reduce(%q)", "reshard(%q)")), ElementsAre("local_c1"));
  EXPECT_THAT(LabelsOf(With(kLocal, "%a: f32[4] @m[-]", "%a: f32[4] @m[tp]")),
              ElementsAre("local_c3"));
  EXPECT_THAT(LabelsOf(With(kLocal, "%b: f32[4] @m[tp]", "%b: f32[4] @m[-]")),
              ElementsAre("local_c3", "local_c3"));
  EXPECT_THAT(LabelsOf(With(kLocal, "%d: f32[4] @m[dp]", "%d: f32[4] @m[tp]")),
              ElementsAre("local_c3"));
  EXPECT_THAT(LabelsOf(With(kLocal, "%e: f32[8,4] @m[-,dp]", "%e: f32[8,4] @m[-,tp]")),
              ElementsAre("local_c3"));
  EXPECT_THAT(LabelsOf(With(kLocal, "%f: f32[4] @m[-]+dp", "%f: f32[4] @m[tp]+dp")),
              ElementsAre("local_c3"));
  EXPECT_THAT(LabelsOf(With(kLocal, "shard_slice(%w)\n}", "all_gather(%w)\n}")),
              ElementsAre("local_c3"));
}

// Graphs that no text says: the reader refuses them before there is a graph.
TEST(CheckTest, NodesFollowTheirOperands) {
  const auto with_node = [](ValueId operand, int64_t size) {
    GraphBuilder builder("g");
    builder.AddInput("x", {DType::kF32, {{4, ""}}}, InputKind::kData);
    Node node;
    node.op = FindOp("gelu");
    node.inputs = {operand};
    Value result;
    result.name = "y";
    result.type = {DType::kF32, {{size, ""}}};
    builder.AppendRaw(std::move(node), {result});
    return CheckGraph(std::move(builder).Finish());
  };
  EXPECT_TRUE(with_node(0, 4).ok()) << with_node(0, 4);
  EXPECT_EQ(with_node(1, 4).message(), "%y: operand 1 is not made before its use [graph_c1]");
  EXPECT_EQ(with_node(7, 4).message(), "%y: operand 7 is not made before its use [graph_c1]");
  EXPECT_EQ(with_node(0, 5).message(), "%y: is f32[5], but gelu makes f32[4] [graph_c2]");
}

TEST(CheckTest, InputsHaveTheAttributesOfTheirKind) {
  GraphBuilder builder("g");
  builder.AddInput("w", {DType::kF32, {{4, ""}}}, InputKind::kData, {{"init", "ones"}});
  EXPECT_EQ(CheckGraph(std::move(builder).Finish()).message(),
            "%w: a data input has no attribute `init` [input_c4] [graph_c3]");
}

TEST(CheckTest, MessagesNameValuePlaceAndLabel) {
  const absl::Status status = CheckGraph(Parse(With(kLogical, "layer 0 at", "layer 9 at")));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "m.cc:3:1: %h: layer 9 of a graph with 2 [graph_c5]\n"
            "%l: layer 2 reads %h of layer 9 [graph_c5]");
}

}  // namespace
}  // namespace mgc
