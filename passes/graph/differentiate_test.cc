#include "passes/graph/differentiate.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "graph/ir/step_gradients.h"
#include "gtest/gtest.h"
#include "passes/graph/simplify.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

// A word table used at both ends, two layers with a residual stream.
constexpr char kTied[] = R"(graph @tied logical layers=2 (
  param %w: f32[vocab=5,embed=4] {init="normal", std=0.1, decay=1},
  param %a: f32[embed=4] {init="zeros", decay=0},
  param %b: f32[embed=4] {init="zeros"},
  data %ids: i64[batch=2,seq=3],
  data %weights: f32[batch=2,seq=3]
) {
  %x = lookup(%w, %ids) layer embedding
  %xa = mul(%x, %a) layer 0
  %y = add(%x, %xa) layer 0
  %yb = mul(%y, %b) layer 1
  %z = add(%y, %yb) layer 1
  %logits = matmul(%z, %w) {spec="b s e, v e -> b s v"} layer 2
  %loss = total(%logits) layer 2
  %count = total(%weights) layer 2
  loss %loss weight 1.0
  report "count" = %count
})";

Graph Training(const char* text) {
  const absl::StatusOr<Graph> training = Differentiate(ReadGraph(text));
  EXPECT_TRUE(training.ok()) << training.status();
  if (!training.ok()) return Graph();
  EXPECT_TRUE(CheckGraph(*training).ok()) << CheckGraph(*training);
  return *training;
}

std::string ErrorOf(const char* text) {
  const absl::StatusOr<Graph> training = Differentiate(ReadGraph(text));
  return training.ok() ? "" : std::string(training.status().message());
}

// Accumulators with the layer of the node that adds to them, in order of the graph's inputs.
std::vector<std::pair<std::string, int>> Accumulators(const Graph& graph) {
  std::vector<std::pair<std::string, int>> found;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kAccumulator) continue;
    const NodeId user = graph.Users()[static_cast<size_t>(input.value)].at(0);
    found.emplace_back(graph.value(input.value).name, graph.node(user).layer);
  }
  return found;
}

TEST(DifferentiateTest, EveryLayerThatUsesAParameterHasItsAccumulator) {
  const Graph graph = Training(kTied);
  EXPECT_EQ(Accumulators(graph),
            (std::vector<std::pair<std::string, int>>{{"loss/sum", 2},
                                                      {"tokens/sum", 2},
                                                      {"w/grad", kEmbeddingLayer},
                                                      {"w/grad.2", 2},
                                                      {"a/grad", 0},
                                                      {"b/grad", 1}}));
  // Added in the update, in order of use.
  const Node& sum = graph.node(graph.value(graph.FindValue("w/grad.sum")).producer);
  EXPECT_EQ(sum.phase, Phase::kUpdate);
  EXPECT_EQ(sum.inputs, (std::vector<ValueId>{graph.FindValue("w/grad.next"),
                                              graph.FindValue("w/grad.2.next")}));
}

TEST(DifferentiateTest, OneGradientCrossesEachCut) {
  const Graph graph = Simplify(Training(kTied));
  std::map<std::pair<int, int>, std::vector<std::string>> crossing;
  const std::vector<std::vector<NodeId>> users = graph.Users();
  for (size_t v = 0; v < users.size(); ++v) {
    const NodeId producer = graph.value(static_cast<ValueId>(v)).producer;
    if (producer == kNone || graph.node(producer).phase != Phase::kBackward) continue;
    for (NodeId user : users[v]) {
      const Node& use = graph.node(user);
      if (use.phase != Phase::kBackward || use.layer == graph.node(producer).layer) continue;
      std::vector<std::string>& names = crossing[{graph.node(producer).layer, use.layer}];
      const std::string& name = graph.value(static_cast<ValueId>(v)).name;
      if (names.empty() || names.back() != name) names.push_back(name);
    }
  }
  ASSERT_EQ(crossing.size(), 3u);
  for (const auto& [cut, names] : crossing) {
    EXPECT_EQ(cut.first, cut.second + 1) << names[0];
    EXPECT_EQ(names.size(), 1u) << names[0];
  }
}

TEST(DifferentiateTest, TheWeightOfALossSeedsItsBackward) {
  const Graph graph = Training(R"(graph @g logical (
    param %w: f32[4], data %x: f32[4], data %weights: f32[4]
  ) {
    %a = weighted_sum(%w, %x)
    %b = total(%w)
    %count = total(%weights)
    loss %a weight 1.0
    loss %b weight 0.25
    report "count" = %count
  })");
  EXPECT_EQ(graph.node(graph.value(graph.FindValue("a.seed")).producer).attrs.Real("value"), 1.0);
  EXPECT_EQ(graph.node(graph.value(graph.FindValue("b.seed")).producer).attrs.Real("value"), 0.25);
  // Terms are not added up, gradients are: two uses of w in one place, one accumulator.
  const Node& sum = graph.node(graph.value(graph.FindValue("w.grad")).producer);
  EXPECT_EQ(sum.phase, Phase::kBackward);
  EXPECT_EQ(sum.inputs,
            (std::vector<ValueId>{graph.FindValue("w.grad.1"), graph.FindValue("w.grad.2")}));
  EXPECT_NE(graph.FindValue("w/grad"), kNone);
  EXPECT_EQ(graph.FindValue("w/grad.2"), kNone);
}

// What makes it a mean, one number for all, goes into the norm and into what clips.
TEST(DifferentiateTest, AGradientIsASum) {
  const Graph graph = Training(kTied);
  const std::vector<std::vector<NodeId>> users = graph.Users();
  const auto readers = [&](ValueId value) {
    Lines names;
    for (NodeId user : users[static_cast<size_t>(value)]) {
      names.push_back(graph.node(user).op->name);
    }
    return names;
  };
  const auto gradients = GradientsOf(graph);
  EXPECT_EQ(gradients.size(), 3u);
  for (const char* name : {"w", "a", "b"}) {
    const ValueId sum = gradients.at(graph.FindValue(name));
    EXPECT_EQ(graph.value(sum).name, absl::StrCat(name, "/grad.resolved"));
    EXPECT_EQ(graph.node(graph.value(sum).producer).op->name, "reshard");
    EXPECT_EQ(readers(sum), (Lines{"sum_squares", "adamw"})) << name;
  }
  const ValueId factor = graph.FindValue("grad_factor");
  EXPECT_EQ(graph.node(graph.value(factor).producer).op->name, "inv");
  EXPECT_EQ(readers(factor), (Lines{"mul", "mul"}));
  EXPECT_EQ(readers(graph.FindValue("clip.factor")), (Lines{"adamw", "adamw", "adamw"}));
}

TEST(DifferentiateTest, TheNormHasOneEntryPerParameter) {
  const Graph graph = Training(kTied);
  const Node& stack = graph.node(graph.value(graph.FindValue("grad_squares")).producer);
  EXPECT_EQ(stack.op->name, "stack");
  Lines entries;
  for (ValueId id : stack.inputs) entries.push_back(graph.value(id).name);
  EXPECT_EQ(entries, (Lines{"w/grad.square", "a/grad.square", "b/grad.square"}));
}

TEST(DifferentiateTest, ReportsAndAssignments) {
  const Graph graph = Training(kTied);
  Lines outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back(output.kind == OutputKind::kReport
                          ? output.name
                          : absl::StrCat("-> ", graph.value(output.target).name));
  }
  EXPECT_EQ(outputs,
            (Lines{"-> loss/sum", "-> tokens/sum", "loss", "tokens", "-> w/grad", "-> w/grad.2",
                   "-> a/grad", "-> b/grad", "-> w", "-> w/m", "-> w/v", "-> a", "-> a/m", "-> a/v",
                   "-> b", "-> b/m", "-> b/v", "grad_norm", "grad_factor"}));
}

TEST(DifferentiateTest, OnlyDecayingParametersDecay) {
  const Graph graph = Training(kTied);
  std::map<std::string, int64_t> decay;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "adamw") {
      decay[graph.value(node.inputs[0]).name] = node.attrs.Int("decay");
    }
  }
  EXPECT_EQ(decay, (std::map<std::string, int64_t>{{"w", 1}, {"a", 0}, {"b", 0}}));
}

// A gradient is named after what it is the gradient of, contributions to it by numbers in order of
// use; what is made on the way, after where it starts from.
TEST(DifferentiateTest, GradientsAreNamedAfterTheirPrimals) {
  const Graph graph = Training(kTied);
  Lines names;
  for (const Node& node : graph.nodes()) {
    const std::string& name = graph.value(node.outputs[0]).name;
    if (absl::StrContains(name, ".grad")) names.push_back(absl::StrCat(name, " ", node.op->name));
  }
  EXPECT_EQ(names, (Lines{"logits.grad broadcast", "z.grad matmul", "w.grad.2 matmul",
                          "y.grad.1 mul", "yb.grad.mul.2 mul", "b.grad reduce_sum", "y.grad add",
                          "x.grad.1 mul", "xa.grad.mul.2 mul", "a.grad reduce_sum", "x.grad add",
                          "w.grad.1 lookup_grad"}));
  const NodeId user = graph.Users()[static_cast<size_t>(graph.FindValue("w/grad"))].at(0);
  EXPECT_EQ(graph.value(graph.node(user).inputs[1]).name, "w.grad.1");
}

// The name of a gradient that a model has taken for something else stays the model's.
TEST(DifferentiateTest, NamesOfTheModelStay) {
  const Graph graph = Training(R"(graph @g logical (
    param %w: f32[4], data %weights: f32[4]
  ) {
    %x.grad = mul(%w, %weights)
    %x = mul(%w, %x.grad)
    %y = mul(%x, %x)
    %l = total(%y)
    %count = total(%weights)
    loss %l weight 1.0
    report "count" = %count
  })");
  EXPECT_EQ(graph.node(graph.value(graph.FindValue("x.grad")).producer).phase, Phase::kForward);
  EXPECT_EQ(graph.value(graph.FindValue("x.grad")).primal, kNone);
}

// A parameter that the loss does not depend on is left as it is.
TEST(DifferentiateTest, RefusesWhatCannotBeTrained) {
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"(graph @g logical (
    param %w: f32[4], param %idle: f32[4], data %weights: f32[4]
  ) {
    %l = total(%w)
    %i = total(%idle)
    %count = total(%weights)
    loss %l weight 1.0
    report "count" = %count
    report "idle" = %i
  })"),
                                "[differentiate_c4]"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"(graph @g logical (param %w: f32[4]) {
    %l = total(%w)
    loss %l weight 1.0
  })"),
                                "[differentiate_c1]"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"(graph @g logical (param %w: f32[4]) {
    %l = total(%w)
    report "count" = %l
  })"),
                                "[differentiate_c1]"));
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"(graph @g logical (data %x: f32[4]) {
    %l = total(%x)
    loss %l weight 1.0
    report "count" = %l
  })"),
                                "[differentiate_c2]"));
  // The second term would be reported under the name of the count of tokens.
  EXPECT_EQ(ErrorOf(R"(graph @g logical (param %w: f32[4]) {
    %l = total(%w)
    %s = sum_squares(%w)
    loss %l weight 1.0
    loss "tokens" = %s weight 0.5
    report "count" = %l
  })"),
            "loss term `tokens` has the name of another report [differentiate_c3]");
}

TEST(EvaluationTest, NoBackwardNoDropout) {
  const absl::StatusOr<Graph> evaluation = Evaluation(ReadGraph(R"(graph @g logical (
    param %w: f32[4], data %x: f32[4], data %weights: f32[4]
  ) {
    %d = dropout(%w) {p=0.5, key="k"}
    %l = weighted_sum(%d, %x)
    %count = total(%weights)
    loss %l weight 1.0
    report "count" = %count
  })"));
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_TRUE(CheckGraph(*evaluation).ok()) << CheckGraph(*evaluation);
  EXPECT_EQ(Listing(*evaluation), (Lines{"l = weighted_sum(w, x)", "count = total(weights)",
                                         "loss/sum.next = accumulate(loss/sum, l)",
                                         "tokens/sum.next = accumulate(tokens/sum, count)"}));
  EXPECT_TRUE(Listing(*evaluation, Phase::kBackward).empty());
  Lines reports;
  for (const GraphOutput& output : evaluation->outputs()) {
    if (output.kind == OutputKind::kReport) reports.push_back(output.name);
  }
  EXPECT_EQ(reports, (Lines{"loss", "tokens"}));
}

}  // namespace
}  // namespace mgc
