#include "frontends/adapter.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/layers.h"
#include "frontends/models.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

std::vector<Dim> Dims() { return {{2, "batch"}, {6, "seq"}, {8, "embed"}, {12, "mlp"}}; }

Tensor Stream(ModelBuilder& b) { return b.Data("x", "batch seq embed", DType::kF32); }

void SumLoss(ModelBuilder& b, Tensor x) { b.Loss("loss", b.Op("total", {x})); }

Lines Listing(const Graph& graph) {
  Lines lines;
  for (const Node& node : graph.nodes()) {
    Lines inputs;
    for (ValueId id : node.inputs) inputs.push_back(graph.value(id).name);
    lines.push_back(absl::StrCat(graph.value(node.outputs[0]).name, " = ", node.op->name, "(",
                                 absl::StrJoin(inputs, ", "), ")"));
  }
  return lines;
}

// Every parameter's name and type, marked where it is trained.
Lines Parameters(const Graph& graph) {
  Lines lines;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    EXPECT_TRUE(!IsTrained(input.attrs) || input.attrs.Int("adapter", 0) == 1);
    lines.push_back(absl::StrCat(IsTrained(input.attrs) ? "+" : "", graph.value(input.value).name,
                                 " ", graph.type(input.value).ToString()));
  }
  return lines;
}

TEST(AdapterTest, StandsBesideTheProductInOneSum) {
  Adapter adapter({2, 8, {{"up"}}});
  ModelBuilder b("m", Dims());
  b.AdaptWith(&adapter);
  const Tensor x = Stream(b);
  LinearOptions options;
  options.bias = true;
  const Tensor up = Linear(b, "up", x, "embed -> mlp", options);
  options.residual = x;
  SumLoss(b, Linear(b, "down", up, "mlp -> embed", options));
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(
      Listing(*graph),
      (Lines{"up.matmul = matmul(x, up)", "up.lora_a.matmul = matmul(x, up.lora_a)",
             "up.scale = scale(up.lora_a.matmul)", "up.lora_b.matmul = matmul(up.scale, up.lora_b)",
             "up.add = add(up.matmul, up.bias, up.lora_b.matmul)",
             "down.matmul = matmul(up.add, down)", "down.add = add(x, down.matmul, down.bias)",
             "total = total(down.add)"}));
  EXPECT_EQ(Parameters(*graph),
            (Lines{"up f32[embed=8,mlp=12]", "up.bias f32[mlp=12]",
                   "+up.lora_a f32[embed=8,adapter=2]", "+up.lora_b f32[adapter=2,mlp=12]",
                   "down f32[mlp=12,embed=8]", "down.bias f32[embed=8]"}));
  EXPECT_EQ(graph->nodes()[2].attrs.Real("value"), 4);
  const Attrs& a = graph->FindInput(graph->FindValue("up.lora_a"))->attrs;
  EXPECT_EQ(a.Text("init"), "normal");
  EXPECT_DOUBLE_EQ(a.Real("std"), 1 / std::sqrt(24.0));
  EXPECT_EQ(a.Int("decay", 0), 1);
  const Attrs& zeros = graph->FindInput(graph->FindValue("up.lora_b"))->attrs;
  EXPECT_EQ(zeros.Text("init"), "zeros");
  EXPECT_EQ(zeros.Int("decay", 0), 1);
}

TEST(AdapterTest, LayersOfOneTensorShareA) {
  Adapter adapter({2, 2, {{"q", "k"}}});
  ModelBuilder b("m", Dims());
  b.AdaptWith(&adapter);
  const Tensor x = Stream(b);
  for (int layer = 0; layer < 2; ++layer) {
    ModelBuilder::Scope scope = b.Layer(layer);
    for (const char* name : {"q", "k"}) {
      b.Loss(absl::StrCat(name, layer), b.Op("total", {Linear(b, name, x, "embed -> mlp")}));
    }
  }
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  Lines trained;
  for (const std::string& line : Parameters(*graph)) {
    if (line[0] == '+') trained.push_back(line);
  }
  EXPECT_EQ(
      trained,
      (Lines{
          "+layers.0.q.lora_a f32[embed=8,adapter=2]", "+layers.0.q.lora_b f32[adapter=2,mlp=12]",
          "+layers.0.k.lora_b f32[adapter=2,mlp=12]", "+layers.1.q.lora_a f32[embed=8,adapter=2]",
          "+layers.1.q.lora_b f32[adapter=2,mlp=12]", "+layers.1.k.lora_b f32[adapter=2,mlp=12]"}));
}

TEST(AdapterTest, MistakesAreTold) {
  Adapter adapter({2, 2, {{"q", "k"}, {"nowhere"}}});
  ModelBuilder b("m", Dims());
  b.AdaptWith(&adapter);
  const Tensor x = Stream(b);
  const Tensor q = Linear(b, "q", x, "embed -> embed");
  const Tensor k = Linear(b, "k", q, "embed -> embed");
  SumLoss(b, k);
  EXPECT_NE(std::move(b).Finish().status().message().find("shares lora_a with q"),
            std::string::npos);

  Adapter unmet({2, 2, {{"nowhere"}}});
  ModelBuilder other("m", Dims());
  other.AdaptWith(&unmet);
  SumLoss(other, Linear(other, "q", Stream(other), "embed -> embed"));
  EXPECT_EQ(std::move(other).Finish().status().message(), "no linear layer `nowhere` to adapt");

  Adapter none({0, 2, {}});
  ModelBuilder late("m", {{2, "batch"}, {6, "seq"}, {8, "embed"}, {3, "adapter"}});
  const Tensor product = Linear(late, "q", Stream(late), "embed -> embed");
  late.AdaptWith(&none);
  SumLoss(late, product);
  const std::string said(std::move(late).Finish().status().message());
  for (const char* part : {"comes before all parameters", "a dim `adapter` of its own",
                           "an adapter of rank 0; it is at least 1"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

// Of every family; a model that is asked trains nothing.
TEST(AdapterTest, ModelsOfAllFamiliesTakeOne) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name.find("tiny") == absl::string_view::npos) continue;
    SCOPED_TRACE(std::string(preset.name));
    const auto config = LoadModelPreset(preset.name);
    ASSERT_TRUE(config.ok());
    ModelOptions options;
    options.adapter = AdapterOptions{4, 8, {{"attention.q", "attention.k"}, {"mlp.down"}}};
    const auto graph = BuildModel(*config, 1, config->max_positions, options);
    ASSERT_TRUE(graph.ok()) << graph.status();
    int trained = 0;
    for (const std::string& line : Parameters(*graph)) trained += line[0] == '+' ? 1 : 0;
    EXPECT_EQ(trained, 5 * config->layers);
    EXPECT_FALSE(IsAsked(*graph));
    options.next_token = NextToken::kWhole;
    if (!CheckModelOptions(*config, options).ok()) continue;
    const auto asked = BuildModel(*config, 1, config->max_positions, options);
    ASSERT_TRUE(asked.ok()) << asked.status();
    EXPECT_TRUE(IsAsked(*asked));
  }
}

}  // namespace
}  // namespace mgc
