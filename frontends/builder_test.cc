#include "frontends/builder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<Dim> SmallDims() { return {{2, "batch"}, {6, "seq"}, {8, "embed"}, {12, "mlp"}}; }

// The sum of `x` as the model's loss.
void SumLoss(ModelBuilder& b, Tensor x) { b.Loss("loss", b.Op("total", {x})); }

std::vector<std::string> ErrorsOf(ModelBuilder&& b) {
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(graph.status().message(), '\n');
}

// The beginning of an error made on line `line` of this file.
std::string At(int line) { return absl::StrCat("frontends/builder_test.cc:", line, ":"); }

#define EXPECT_ERROR(error, line, text)                                                  \
  EXPECT_TRUE(absl::StartsWith((error), At(line)) && absl::StrContains((error), (text))) \
      << "got `" << (error) << "`, want line " << (line) << " and `" << (text) << "`"

TEST(ModelBuilderTest, ParametersHavePathsShapesAndInitialization) {
  ModelBuilder b("m", SmallDims());
  Tensor w;
  Tensor bias;
  {
    ModelBuilder::Scope layer = b.Layer(0);
    ModelBuilder::Scope mlp = b.In("mlp");
    w = b.Param("up", "embed mlp", NormalInit(0.5));
    ModelBuilder::Scope up = b.In("up");
    bias = b.Param("bias", "mlp 3", ZerosInit());
    EXPECT_EQ(b.Path("x"), "layers.0.mlp.up.x");
    EXPECT_EQ(b.Path(""), "layers.0.mlp.up");
  }
  EXPECT_EQ(b.Path("x"), "x");
  SumLoss(b, w);
  SumLoss(b, bias);
  absl::StatusOr<Graph> refused = std::move(b).Finish();
  ASSERT_FALSE(refused.ok());  // two losses of one name

  ModelBuilder c("m", SmallDims());
  c.Loss("a", c.Op("total", {c.Param("w", "embed 3", NormalInit(0.5))}));
  c.Loss("b", c.Op("total", {c.Param("n", "mlp", OnesInit())}), 0.25);
  absl::StatusOr<Graph> graph = std::move(c).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs().size(), 2u);
  const GraphInput& weight = graph->inputs()[0];
  EXPECT_EQ(graph->value(weight.value).name, "w");
  EXPECT_EQ(graph->type(weight.value).ToString(), "f32[embed=8,3]");
  EXPECT_EQ(weight.kind, InputKind::kParam);
  EXPECT_EQ(weight.attrs, (Attrs{{"init", "normal"}, {"std", 0.5}, {"decay", int64_t{1}}}));
  EXPECT_EQ(graph->inputs()[1].attrs, (Attrs{{"init", "ones"}, {"decay", int64_t{0}}}));
  ASSERT_EQ(graph->outputs().size(), 2u);
  EXPECT_EQ(graph->outputs()[1].kind, OutputKind::kLoss);
  EXPECT_EQ(graph->outputs()[1].weight, 0.25);
  EXPECT_EQ(graph->level(), Level::kLogical);
}

TEST(ModelBuilderTest, NodesKnowTheirCallAndLayer) {
  ModelBuilder b("m", SmallDims());
  const Tensor w = b.Param("w", "embed", NormalInit(1));
  Tensor x;
  {
    ModelBuilder::Scope layer = b.Layer(0);
    ModelBuilder::Scope part = b.In("part");
    x = b.Op("gelu", {w});
  }
  const int line = __LINE__ - 2;
  {
    ModelBuilder::Scope head = b.Head();
    SumLoss(b, x);
  }
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes().size(), 2u);
  const Node& node = graph->node(0);
  EXPECT_EQ(node.op->name, "gelu");
  EXPECT_EQ(node.layer, 0);
  EXPECT_EQ(node.origin, "layers.0.part");
  EXPECT_EQ(node.loc.line, line);
  EXPECT_EQ(graph->files(), std::vector<std::string>{"frontends/builder_test.cc"});
  EXPECT_EQ(graph->value(node.outputs[0]).name, "layers.0.part.gelu");
  EXPECT_EQ(graph->node(1).layer, 1);
  EXPECT_EQ(graph->num_layers(), 1);
}

TEST(ModelBuilderTest, DataInputsAreMadeOnce) {
  ModelBuilder b("m", SmallDims());
  const Tensor first = b.Weights();
  b.Tokens();
  b.Targets();
  b.Loss("loss", b.Op("weighted_sum", {first, b.Weights()}));
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs().size(), 3u);
  std::vector<std::string> inputs;
  for (const GraphInput& input : graph->inputs()) {
    EXPECT_EQ(input.kind, InputKind::kData);
    inputs.push_back(
        absl::StrCat(graph->value(input.value).name, ": ", graph->type(input.value).ToString()));
  }
  EXPECT_EQ(inputs,
            (std::vector<std::string>{"weights: f32[batch=2,seq=6]", "tokens: i64[batch=2,seq=6]",
                                      "targets: i64[batch=2,seq=6]"}));
}

TEST(ModelBuilderTest, PinIsANodeOfItsOwn) {
  ModelBuilder b("m", SmallDims());
  const Tensor w = b.Param("w", "embed mlp", NormalInit(1));
  SumLoss(b, b.Pin(w, "dp,tp.0*tp.1"));
  absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node& pin = graph->node(0);
  EXPECT_EQ(pin.op->name, "reshard");
  EXPECT_EQ(pin.attrs.Int("pin"), 1);
  EXPECT_EQ(pin.attrs.Text("sharding"), "dp,tp.0*tp.1");
  EXPECT_EQ(graph->type(pin.outputs[0]), graph->type(pin.inputs[0]));
}

TEST(ModelBuilderTest, MistakesAreCollectedWithTheirPlaces) {
  ModelBuilder b("m", SmallDims());
  const int line = __LINE__;
  const Tensor w = b.Param("w", "embed mlp", NormalInit(1));
  const Tensor bad = b.Param("v", "embed mpl", NormalInit(1));
  const Tensor wrong = b.Op("matmul", {w, w}, {{"spec", "a b, c d -> a d"}});
  b.Op("gleu", {w});
  b.Op("add", {bad, wrong, b.Op("gelu", {bad})});  // follows from the above: no error of its own
  b.Param("w", "embed", NormalInit(1));
  b.Op("gelu", {Tensor()});
  b.Loss("loss", w);
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  ASSERT_EQ(errors.size(), 6u) << absl::StrJoin(errors, "\n");
  EXPECT_ERROR(errors[0], line + 2, "no dim `mpl` (did you mean mlp?)");
  EXPECT_ERROR(errors[1], line + 3, "matmul");
  EXPECT_ERROR(errors[2], line + 4, "no op `gleu` in models (did you mean gelu?)");
  EXPECT_ERROR(errors[3], line + 6, "`w` is already the name of a value");
  EXPECT_ERROR(errors[4], line + 7, "operand 0 of gelu is empty");
  EXPECT_ERROR(errors[5], line + 8, "must be a real scalar, not f32[embed=8,mlp=12]");
}

TEST(ModelBuilderTest, ErrorsSayThePath) {
  ModelBuilder b("m", SmallDims());
  ModelBuilder::Scope layer = b.Layer(0);
  ModelBuilder::Scope mlp = b.In("mlp");
  b.Op("nonsense", {});
  const int line = __LINE__ - 1;
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  EXPECT_ERROR(errors[0], line, "layers.0.mlp: no op `nonsense`");
}

TEST(ModelBuilderTest, ValuesOfAnotherModelAreRefused) {
  ModelBuilder a("a", SmallDims());
  ModelBuilder b("b", SmallDims());
  const Tensor w = a.Param("w", "embed", NormalInit(1));
  b.Op("gelu", {w});
  b.Report("x", w);
  b.Pin(w, "-");
  const int line = __LINE__;
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_ERROR(errors[0], line - 3, "operand 0 of gelu is a value of another model");
  EXPECT_ERROR(errors[1], line - 2, "a value of another model");
  EXPECT_ERROR(errors[2], line - 1, "a value of another model");
}

TEST(ModelBuilderTest, PartsComeInOrder) {
  ModelBuilder b("m", SmallDims());
  { ModelBuilder::Scope scope = b.Layer(1); }
  { ModelBuilder::Scope scope = b.Layer(2); }
  { ModelBuilder::Scope scope = b.EmbeddingLayer(); }
  { ModelBuilder::Scope scope = b.Head(); }
  { ModelBuilder::Scope scope = b.Layer(3); }
  ModelBuilder::Scope scope = b.In("outer");
  { ModelBuilder::Scope inner = b.Layer(3); }
  const int line = __LINE__;
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  ASSERT_EQ(errors.size(), 5u) << absl::StrJoin(errors, "\n");
  EXPECT_ERROR(errors[0], line - 7, "layer 1 where layer 0 is next");
  EXPECT_ERROR(errors[1], line - 5, "the embedding comes before the layers");
  EXPECT_ERROR(errors[2], line - 3, "layer 3 comes after the head");
  EXPECT_ERROR(errors[4], line - 1, "a part of the model inside `outer`");
}

TEST(ModelBuilderTest, BadDimsSizesPathsAndPins) {
  ModelBuilder b("m", {{0, "batch"}, {2, "seq"}, {3, "seq"}, {4, "a b"}, {1 << 30, "embed"}});
  const int line = __LINE__;
  b.Param("w", "embed 1048576 1048576", NormalInit(1));
  b.Param("w w", "embed", NormalInit(1));
  b.Param("n", "embed", NormalInit(-1));
  b.Param("u", "embed", {"uniform", 1, true});
  b.Param("z", "embed 0", NormalInit(1));
  const Tensor w = b.Param("ok", "seq embed", NormalInit(1));
  b.Pin(w, "dp");
  b.Pin(w, "dp,dp");
  b.Pin(w, "[dp,-]");
  b.Pin(w, "dp,");
  b.RandomKey("key");
  b.RandomKey("key");
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  ASSERT_EQ(errors.size(), 13u) << absl::StrJoin(errors, "\n");
  EXPECT_ERROR(errors[0], line - 1, "dim `batch` has size 0");
  EXPECT_ERROR(errors[1], line - 1, "dim `seq` is given twice");
  EXPECT_ERROR(errors[2], line - 1, "`a b` is no name of a dim");
  EXPECT_ERROR(errors[3], line + 1, "more than 1125899906842624 elements");
  EXPECT_ERROR(errors[4], line + 2, "`w w` is no path of a parameter");
  EXPECT_ERROR(errors[5], line + 3, "standard deviation -1");
  EXPECT_ERROR(errors[6], line + 4, "unknown initialization `uniform`");
  EXPECT_ERROR(errors[7], line + 5, "a dim of size 0");
  for (size_t i = 8; i < 12; ++i) {
    EXPECT_ERROR(errors[i], line + static_cast<int>(i) - 1, "is no sharding of f32[seq=2,embed=");
  }
  EXPECT_ERROR(errors[12], line + 12, "`key` already names a random stream");
}

TEST(ModelBuilderTest, AModelNeedsALossAndUsesItsParameters) {
  ModelBuilder b("empty", SmallDims());
  std::vector<std::string> errors = ErrorsOf(std::move(b));
  EXPECT_EQ(errors, std::vector<std::string>{"model `empty` has no loss"});

  ModelBuilder c("m", SmallDims());
  SumLoss(c, c.Weights());
  c.Param("lost", "embed", NormalInit(1));
  const int line = __LINE__ - 1;
  errors = ErrorsOf(std::move(c));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_ERROR(errors[0], line, "parameter `lost` is never used");
}

TEST(ModelBuilderTest, ManyErrorsAreCounted) {
  ModelBuilder b("m", SmallDims());
  for (int i = 0; i < 25; ++i) b.Op("nonsense", {});
  const std::vector<std::string> errors = ErrorsOf(std::move(b));
  ASSERT_EQ(errors.size(), 21u);
  EXPECT_EQ(errors[20], "... and 5 more");
}

}  // namespace
}  // namespace mgc
