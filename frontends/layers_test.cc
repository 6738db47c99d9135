#include "frontends/layers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontends/losses.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<Dim> Dims() {
  return {{2, "batch"},    {6, "seq"},      {8, "embed"}, {4, "heads"},
          {2, "kv_heads"}, {2, "head_dim"}, {12, "mlp"},  {13, "vocab"}};
}

// A stand-in for the residual stream: [batch, seq, embed].
Tensor Stream(ModelBuilder& b) { return Embedding(b, "word", b.Tokens(), "vocab embed"); }

void SumLoss(ModelBuilder& b, Tensor x) { b.Loss("loss", b.Op("total", {x})); }

Graph FinishOk(ModelBuilder&& b) {
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// `out = op(inputs)` per node, with einsums.
std::vector<std::string> Listing(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> inputs;
    for (ValueId id : node.inputs) inputs.push_back(graph.value(id).name);
    const std::string spec = node.attrs.Text("spec");
    lines.push_back(absl::StrCat(graph.value(node.outputs[0]).name, " = ", node.op->name, "(",
                                 absl::StrJoin(inputs, ", "), ")", spec.empty() ? "" : " ", spec));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LinearTest, ProductBiasAndResidualAreOneSum) {
  ModelBuilder b("m", Dims());
  const Tensor x = Stream(b);
  LinearOptions options;
  options.bias = true;
  const Tensor up = Linear(b, "up", x, "embed -> mlp", options);
  options.residual = x;
  SumLoss(b, Linear(b, "down", up, "mlp -> embed", options));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(Listing(graph), (Lines{"word.lookup = lookup(word, tokens)",
                                   "up.matmul = matmul(word.lookup, up) b s e, e f -> b s f",
                                   "up.add = add(up.matmul, up.bias)",
                                   "down.matmul = matmul(up.add, down) b s f, f e -> b s e",
                                   "down.add = add(word.lookup, down.matmul, down.bias)",
                                   "total = total(down.add)"}));
  EXPECT_EQ(graph.type(graph.FindValue("down.add")).ToString(), "f32[batch=2,seq=6,embed=8]");
  EXPECT_EQ(graph.FindInput(graph.FindValue("up.bias"))->attrs.Int("decay", -1), 0);
}

TEST(LinearTest, DropoutStandsBetweenBiasAndResidual) {
  ModelBuilder b("m", Dims());
  const Tensor x = Stream(b);
  LinearOptions options;
  options.bias = true;
  options.dropout = 0.25;
  options.residual = x;
  SumLoss(b, Linear(b, "out", x, "embed -> embed", options));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(Listing(graph),
            (Lines{"word.lookup = lookup(word, tokens)",
                   "out.matmul = matmul(word.lookup, out) b s e, e e2 -> b s e2",
                   "out.add = add(out.matmul, out.bias)", "out.dropout = dropout(out.add)",
                   "out.add.2 = add(word.lookup, out.dropout)", "total = total(out.add.2)"}));
  const Node& dropout = graph.node(3);
  EXPECT_EQ(dropout.attrs, (Attrs{{"p", 0.25}, {"key", "out.dropout"}}));
  EXPECT_EQ(graph.type(dropout.outputs[0]).ToString(), "f32[batch=2,seq=6,embed=8]");
}

TEST(LinearTest, ContractsSeveralDims) {
  ModelBuilder b("m", Dims());
  const Tensor q = Linear(b, "q", Stream(b), "embed -> heads head_dim");
  SumLoss(b, Linear(b, "out", q, "heads head_dim -> embed"));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(graph.node(1).attrs.Text("spec"), "b s e, e h d -> b s h d");
  EXPECT_EQ(graph.node(2).attrs.Text("spec"), "b s h d, h d e -> b s e");
  EXPECT_EQ(graph.type(graph.FindValue("q")).ToString(), "f32[embed=8,heads=4,head_dim=2]");
  EXPECT_EQ(graph.type(graph.FindValue("out")).ToString(), "f32[heads=4,head_dim=2,embed=8]");
}

TEST(DropoutTest, ZeroIsNoNode) {
  ModelBuilder b("m", Dims());
  SumLoss(b, Dropout(b, "dropout", Stream(b), 0));
  EXPECT_EQ(Listing(FinishOk(std::move(b))),
            (Lines{"word.lookup = lookup(word, tokens)", "total = total(word.lookup)"}));
}

TEST(NormTest, ParametersHaveTheLastDim) {
  ModelBuilder b("m", Dims());
  SumLoss(b, RmsNorm(b, "norm2", LayerNorm(b, "norm1", Stream(b), 1e-3), 1e-4));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(Listing(graph), (Lines{"word.lookup = lookup(word, tokens)",
                                   "norm1.layer_norm = layer_norm(word.lookup, norm1, norm1.bias)",
                                   "norm2.rms_norm = rms_norm(norm1.layer_norm, norm2)",
                                   "total = total(norm2.rms_norm)"}));
  EXPECT_EQ(graph.node(1).attrs.Real("eps"), 1e-3);
  EXPECT_EQ(graph.node(2).attrs.Real("eps"), 1e-4);
  EXPECT_EQ(graph.type(graph.FindValue("norm1.bias")).ToString(), "f32[embed=8]");
  EXPECT_EQ(graph.FindInput(graph.FindValue("norm1"))->attrs.Text("init"), "ones");
}

TEST(AttentionTest, GroupedQueriesWithRope) {
  ModelBuilder b("m", Dims());
  AttentionOptions options;
  options.rope = RopeOptions{500.0, RopeOptions::Llama3{4, 1, 2, 64}};
  options.dropout = 0.125;
  const Tensor x = Stream(b);
  SumLoss(b, Attention(b, "attention", x, x, options));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(
      Listing(graph),
      (Lines{"word.lookup = lookup(word, tokens)",
             "attention.q.matmul = matmul(word.lookup, attention.q) b s e, e h d -> b s h d",
             "attention.k.matmul = matmul(word.lookup, attention.k) b s e, e h d -> b s h d",
             "attention.v.matmul = matmul(word.lookup, attention.v) b s e, e h d -> b s h d",
             "attention.iota = iota()", "attention.rope = rope(attention.q.matmul, attention.iota)",
             "attention.rope.2 = rope(attention.k.matmul, attention.iota)",
             ("attention.attention = attention(attention.rope, attention.rope.2, "
              "attention.v.matmul, attention.iota, attention.iota)"),
             ("attention.out.matmul = matmul(attention.attention, attention.out) "
              "b s h d, h d e -> b s e"),
             "attention.out.add = add(word.lookup, attention.out.matmul)",
             "total = total(attention.out.add)"}));
  EXPECT_EQ(graph.type(graph.FindValue("attention.k")).ToString(),
            "f32[embed=8,kv_heads=2,head_dim=2]");
  const Node& rope = graph.node(5);
  EXPECT_EQ(rope.attrs.Real("theta"), 500.0);
  EXPECT_EQ(rope.attrs.Real("factor"), 4.0);
  EXPECT_EQ(rope.attrs.Real("original"), 64.0);
  const Node& attention = graph.node(7);
  EXPECT_EQ(attention.attrs.Real("p"), 0.125);
  EXPECT_EQ(attention.attrs.Text("key"), "attention.dropout");
  EXPECT_DOUBLE_EQ(attention.attrs.Real("scale"), 0.70710678118654752);
}

TEST(AttentionTest, OneRowOfEachSampleGoesOn) {
  ModelBuilder b("m", Dims());
  AttentionOptions options;
  const Tensor x = Stream(b);
  options.row = b.Data("row", "batch seq", DType::kF32);
  const Tensor residual = ChosenRow(b, options.row, x);
  SumLoss(b, Attention(b, "attention", x, residual, options));
  const Graph graph = FinishOk(std::move(b));
  const Lines listing = Listing(graph);
  EXPECT_EQ(
      Lines(listing.end() - 5, listing.end()),
      (Lines{("attention.attention = attention(attention.q.matmul, attention.k.matmul, "
              "attention.v.matmul, attention.iota, attention.iota)"),
             "attention.matmul = matmul(row, attention.attention) b s, b s h d -> b h d",
             "attention.out.matmul = matmul(attention.matmul, attention.out) b h d, h d e -> b e",
             "attention.out.add = add(matmul, attention.out.matmul)",
             "total = total(attention.out.add)"}));
}

TEST(AttentionTest, NormsWindowsAndCaps) {
  ModelBuilder b("m", Dims());
  AttentionOptions options;
  options.qk_norm = 1e-6;
  options.rope = RopeOptions();
  options.rope->dims = 2;
  options.scale = 0.25;
  options.window = 3;
  options.cap = 50.0;
  const Tensor x = Stream(b);
  SumLoss(b, Attention(b, "attention", x, x, options));
  const Graph graph = FinishOk(std::move(b));
  std::vector<std::string> order;
  for (const Node& node : graph.nodes()) {
    order.push_back(node.op->name);
    if (node.op->name == "rope") {
      EXPECT_EQ(node.attrs.Int("dims"), 2);
    }
    if (node.op->name != "attention") continue;
    EXPECT_EQ(node.attrs.Real("scale"), 0.25);
    EXPECT_EQ(node.attrs.Int("window"), 3);
    EXPECT_EQ(node.attrs.Real("cap"), 50.0);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"lookup", "matmul", "matmul", "matmul", "iota",
                                             "rms_norm", "rms_norm", "rope", "rope", "attention",
                                             "matmul", "add", "total"}));
  EXPECT_EQ(graph.type(graph.FindValue("attention.q_norm")).ToString(), "f32[head_dim=2]");
}

TEST(MlpTest, EachActivationIsAnOp) {
  using Activation = MlpOptions::Activation;
  const std::vector<std::pair<Activation, std::string>> ops = {{Activation::kGelu, "gelu"},
                                                               {Activation::kGeluErf, "gelu_erf"},
                                                               {Activation::kSwiglu, "swiglu"},
                                                               {Activation::kGeglu, "geglu"}};
  for (const auto& [activation, op] : ops) {
    ModelBuilder b("m", Dims());
    MlpOptions options;
    options.activation = activation;
    const Tensor x = Stream(b);
    SumLoss(b, SoftCap(b, Mlp(b, "mlp", x, x, options), 5.0));
    const Graph graph = FinishOk(std::move(b));
    int found = 0;
    for (const Node& node : graph.nodes()) found += node.op->name == op;
    EXPECT_EQ(found, 1) << op;
    EXPECT_EQ(graph.FindValue("mlp.gate") != kNone, IsGated(activation)) << op;
  }
}

TEST(CrossEntropyTest, IsMadeOfSmallOps) {
  ModelBuilder b("m", Dims());
  Tensor table;
  const Tensor x = Embedding(b, "word", b.Tokens(), "vocab embed", 0.02, &table);
  CrossEntropyLoss(b, Logits(b, x, table));
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(Listing(graph),
            (Lines{"word.lookup = lookup(word, tokens)",
                   "matmul = matmul(word.lookup, word) b s e, v e -> b s v",
                   "reduce_max = reduce_max(matmul)", "stop_gradient = stop_gradient(reduce_max)",
                   "exp_sum = exp_sum(matmul, stop_gradient)",
                   "log_shift = log_shift(exp_sum, stop_gradient)", "pick = pick(matmul, targets)",
                   "sub = sub(log_shift, pick)", "weighted_sum = weighted_sum(sub, weights)",
                   "total = total(weights)"}));
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(graph.outputs()[0].name, "loss");
  EXPECT_EQ(graph.outputs()[0].kind, OutputKind::kLoss);
  EXPECT_EQ(graph.outputs()[0].weight, 1.0);
  EXPECT_EQ(graph.type(graph.outputs()[0].value).ToString(), "f64[]");
  EXPECT_EQ(graph.outputs()[1].name, "count");
  EXPECT_EQ(graph.outputs()[1].kind, OutputKind::kReport);
}

// What a user writes for a model of their own.
TEST(LayersTest, SmallModel) {
  ModelBuilder b("mine", {{2, "batch"},
                          {16, "seq"},
                          {32, "embed"},
                          {4, "heads"},
                          {4, "kv_heads"},
                          {8, "head_dim"},
                          {64, "mlp"},
                          {257, "vocab"}});
  Tensor x, table;
  {
    ModelBuilder::Scope scope = b.EmbeddingLayer();
    x = Embedding(b, "word", b.Tokens(), "vocab embed", 0.02, &table);
  }
  for (int i = 0; i < 2; ++i) {
    ModelBuilder::Scope scope = b.Layer(i);
    AttentionOptions attention;
    attention.rope = RopeOptions();
    x = Attention(b, "attention", RmsNorm(b, "norm1", x), x, attention);
    x = Mlp(b, "mlp", RmsNorm(b, "norm2", x), x);
  }
  {
    ModelBuilder::Scope scope = b.Head();
    CrossEntropyLoss(b, Logits(b, RmsNorm(b, "norm", x), table));
  }
  const Graph graph = FinishOk(std::move(b));
  EXPECT_EQ(graph.num_layers(), 2);
  EXPECT_NE(graph.FindValue("layers.1.mlp.down"), kNone);
  EXPECT_NE(graph.FindValue("head.norm"), kNone);
}

TEST(LayersTest, CrossAttentionReadsTheMemory) {
  std::vector<Dim> dims = Dims();
  dims.push_back({9, "other"});
  ModelBuilder b("m", dims);
  Tensor x = Stream(b);
  const Tensor memory = b.Data("memory", "batch other embed", DType::kF32);
  AttentionOptions options;
  options.causal = false;
  options.memory = memory;
  x = Attention(b, "plain", x, x, options);
  options.segments = b.Data("mask", "batch seq", DType::kI64);
  options.memory_segments = b.Data("memory_mask", "batch other", DType::kI64);
  SumLoss(b, Attention(b, "masked", x, x, options));
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  int found = 0;
  for (const Node& node : graph->nodes()) {
    if (!absl::EndsWith(node.op->name, "attention")) continue;
    ++found;
    EXPECT_EQ(node.attrs.Int("causal"), 0);
    EXPECT_EQ(graph->type(node.inputs[0]).ToString(), "f32[batch=2,seq=6,heads=4,head_dim=2]");
    EXPECT_EQ(graph->type(node.inputs[1]).ToString(), "f32[batch=2,other=9,kv_heads=2,head_dim=2]");
    EXPECT_EQ(graph->type(node.inputs[4]).ToString(), "i64[other=9]");
  }
  EXPECT_EQ(found, 2);
}

TEST(LayersTest, MistakesNameTheLayerAndTheCall) {
  ModelBuilder b("m", Dims());
  Tensor x = Stream(b);
  ModelBuilder::Scope scope = b.Layer(0);
  const int line = __LINE__;
  Linear(b, "up", x, "mlp -> embed");
  Linear(b, "up", x, "embed");
  Tensor y = Dropout(b, "dropout", x, 1.0);
  y = Mlp(b, "mlp", y, x);  // follows from the above
  LayerNorm(b, "norm", Tensor());
  CrossEntropyLoss(b, x);
  CrossEntropyLoss(b, b.Op("total", {x}));
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_FALSE(graph.ok());
  const Lines errors = absl::StrSplit(graph.status().message(), '\n');
  const std::string here = "frontends/layers_test.cc:";
  ASSERT_EQ(errors.size(), 5u) << graph.status();
  EXPECT_EQ(errors[0], absl::StrCat(here, line + 1,
                                    ": layers.0.up: the input must end in [mlp=12], but is "
                                    "f32[batch=2,seq=6,embed=8]"));
  EXPECT_EQ(errors[1], absl::StrCat(here, line + 2, ": layers.0.up: `embed` is not `in -> out`"));
  EXPECT_EQ(errors[2], absl::StrCat(here, line + 3, ": layers.0: dropout 1 is not in [0, 1)"));
  EXPECT_EQ(errors[3], absl::StrCat(here, line + 5, ": layers.0.norm: an empty value"));
  EXPECT_EQ(errors[4], absl::StrCat(here, line + 7,
                                    ": layers.0: logits must be [batch, seq, vocab], not "
                                    "f64[]"));
}

}  // namespace
}  // namespace mgc
