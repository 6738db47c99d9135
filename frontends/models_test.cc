#include "frontends/models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

ModelConfig TinyGpt2() {
  ModelConfig config;
  config.family = ModelFamily::kGpt2;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.kv_heads = 4;
  config.head_dim = 4;
  config.ffn = 24;
  config.vocab = 13;
  config.max_positions = 8;
  config.seq_length = 6;
  config.tie_embeddings = true;
  return config;
}

ModelConfig TinyLlama() {
  ModelConfig config = TinyGpt2();
  config.family = ModelFamily::kLlama;
  config.kv_heads = 2;
  config.tie_embeddings = false;
  return config;
}

ModelConfig TinyBert() {
  ModelConfig config = TinyGpt2();
  config.family = ModelFamily::kBert;
  config.segments = 2;
  return config;
}

ModelConfig TinyVit() {
  ModelConfig config = TinyGpt2();
  config.family = ModelFamily::kVit;
  config.image = {4, 10, 2, 3};
  config.max_positions = config.seq_length = 11;
  return config;
}

ModelConfig WithDropout(ModelConfig config) {
  config.embedding_dropout = 0.1;
  config.hidden_dropout = 0.2;
  config.attention_dropout = 0.3;
  return config;
}

Graph Build(const ModelConfig& config, const ModelOptions& options = {}) {
  absl::StatusOr<Graph> graph = BuildModel(config, 2, 6, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::map<std::string, std::string> Parameters(const Graph& graph) {
  std::map<std::string, std::string> parameters;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    parameters[graph.value(input.value).name] = graph.type(input.value).ToString();
  }
  return parameters;
}

TEST(ModelsTest, Gpt2Parameters) {
  std::map<std::string, std::string> expected = {
      {"embedding.word", "f32[vocab=13,embed=16]"},
      {"embedding.position", "f32[position=8,embed=16]"},
      {"head.norm", "f32[embed=16]"},
      {"head.norm.bias", "f32[embed=16]"},
  };
  for (const char* layer : {"layers.0.", "layers.1."}) {
    for (const char* norm :
         {"norm1", "norm1.bias", "norm2", "norm2.bias", "attention.out.bias", "mlp.down.bias"}) {
      expected[absl::StrCat(layer, norm)] = "f32[embed=16]";
    }
    expected[absl::StrCat(layer, "attention.q")] = "f32[embed=16,heads=4,head_dim=4]";
    expected[absl::StrCat(layer, "attention.q.bias")] = "f32[heads=4,head_dim=4]";
    for (const char* part : {"attention.k", "attention.v"}) {
      expected[absl::StrCat(layer, part)] = "f32[embed=16,kv_heads=4,head_dim=4]";
      expected[absl::StrCat(layer, part, ".bias")] = "f32[kv_heads=4,head_dim=4]";
    }
    expected[absl::StrCat(layer, "attention.out")] = "f32[heads=4,head_dim=4,embed=16]";
    expected[absl::StrCat(layer, "mlp.up")] = "f32[embed=16,mlp=24]";
    expected[absl::StrCat(layer, "mlp.up.bias")] = "f32[mlp=24]";
    expected[absl::StrCat(layer, "mlp.down")] = "f32[mlp=24,embed=16]";
  }
  EXPECT_EQ(Parameters(Build(TinyGpt2())), expected);
}

TEST(ModelsTest, LlamaParameters) {
  std::map<std::string, std::string> expected = {
      {"embedding.word", "f32[vocab=13%4,embed=16]"},
      {"head", "f32[vocab=13%4,embed=16]"},
      {"head.norm", "f32[embed=16]"},
  };
  for (const char* layer : {"layers.0.", "layers.1."}) {
    expected[absl::StrCat(layer, "norm1")] = "f32[embed=16]";
    expected[absl::StrCat(layer, "norm2")] = "f32[embed=16]";
    expected[absl::StrCat(layer, "attention.q")] = "f32[embed=16,heads=4,head_dim=4]";
    expected[absl::StrCat(layer, "attention.k")] = "f32[embed=16,kv_heads=2,head_dim=4]";
    expected[absl::StrCat(layer, "attention.v")] = "f32[embed=16,kv_heads=2,head_dim=4]";
    expected[absl::StrCat(layer, "attention.out")] = "f32[heads=4,head_dim=4,embed=16]";
    expected[absl::StrCat(layer, "mlp.gate")] = "f32[embed=16,mlp=24]";
    expected[absl::StrCat(layer, "mlp.up")] = "f32[embed=16,mlp=24]";
    expected[absl::StrCat(layer, "mlp.down")] = "f32[mlp=24,embed=16]";
  }
  ModelOptions options;
  options.vocab_multiple = 4;
  EXPECT_EQ(Parameters(Build(TinyLlama(), options)), expected);
}

TEST(ModelsTest, TyingDecidesOnTheHead) {
  ModelConfig gpt2 = TinyGpt2();
  gpt2.tie_embeddings = false;
  EXPECT_EQ(Parameters(Build(gpt2)).count("head"), 1u);
  ModelConfig llama = TinyLlama();
  llama.tie_embeddings = true;
  const Graph tied = Build(llama);
  EXPECT_EQ(Parameters(tied).count("head"), 0u);
  std::set<std::string> uses;
  const std::vector<std::vector<NodeId>> users = tied.Users();
  for (NodeId id : users[static_cast<size_t>(tied.FindValue("embedding.word"))]) {
    uses.insert(tied.node(id).op->name);
  }
  EXPECT_EQ(uses, (std::set<std::string>{"lookup", "matmul"}));
}

int64_t CountParameters(const Graph& graph) {
  int64_t count = 0;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kParam) count += graph.type(input.value).NumElements();
  }
  return count;
}

// Published counts where they are exact: GPT-2 small, and Llama 3.1 405B's checkpoint.
TEST(ModelsTest, PresetsHaveThePublishedNumberOfParameters) {
  const std::map<std::string, int64_t> published = {{"gpt2-124m", 124439808},
                                                    {"llama3-405b", 405853388800}};
  for (const ModelPreset& preset : ModelPresets()) {
    absl::StatusOr<ModelConfig> config = LoadModelPreset(preset.name);
    ASSERT_TRUE(config.ok()) << config.status();
    absl::StatusOr<Graph> graph = BuildModel(*config, 1, config->seq_length);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->num_layers(), config->layers) << preset.name;
    EXPECT_EQ(CountParameters(*graph), ParameterCount(*config)) << preset.name;
    auto known = published.find(std::string(preset.name));
    if (known == published.end()) continue;
    EXPECT_EQ(CountParameters(*graph), known->second) << preset.name;
  }
}

TEST(ModelsTest, Initialization) {
  const Graph graph = Build(TinyGpt2());
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    const std::string& name = graph.value(input.value).name;
    const bool bias = absl::EndsWith(name, ".bias");
    const bool norm = absl::EndsWith(name, "norm1") || absl::EndsWith(name, "norm2") ||
                      absl::EndsWith(name, "norm");
    const bool out = absl::EndsWith(name, "attention.out") || absl::EndsWith(name, "mlp.down");
    EXPECT_EQ(input.attrs.Text("init"), bias ? "zeros" : norm ? "ones" : "normal") << name;
    EXPECT_EQ(input.attrs.Int("decay", -1), bias || norm ? 0 : 1) << name;
    // 2 layers: 0.02 / sqrt(4).
    EXPECT_DOUBLE_EQ(input.attrs.Real("std"), bias || norm ? 0 : out ? 0.01 : 0.02) << name;
  }
}

// Key -> probability of every dropout.
std::map<std::string, double> Dropouts(const Graph& graph) {
  std::map<std::string, double> dropouts;
  for (const Node& node : graph.nodes()) {
    const double p = node.attrs.Real("p");
    if (p > 0) dropouts[node.attrs.Text("key")] = p;
  }
  return dropouts;
}

TEST(ModelsTest, DropoutPlaces) {
  std::map<std::string, double> expected = {{"embedding.dropout", 0.1}};
  for (int i = 0; i < 2; ++i) {
    expected[absl::StrCat("layers.", i, ".attention.dropout")] = 0.3;
    expected[absl::StrCat("layers.", i, ".attention.out.dropout")] = 0.2;
    expected[absl::StrCat("layers.", i, ".mlp.down.dropout")] = 0.2;
  }
  EXPECT_EQ(Dropouts(Build(WithDropout(TinyGpt2()))), expected);
  EXPECT_EQ(Dropouts(Build(WithDropout(TinyLlama()))), expected);
  const Graph without = Build(TinyLlama());
  EXPECT_TRUE(Dropouts(without).empty());
  for (const Node& node : without.nodes()) EXPECT_NE(node.op->name, "dropout");
}

// How often an op occurs.
int64_t Count(const Graph& graph, absl::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
}

TEST(ModelsTest, Ops) {
  const Graph gpt2 = Build(TinyGpt2());
  EXPECT_EQ(Count(gpt2, "lookup"), 2);
  EXPECT_EQ(Count(gpt2, "matmul"), 2 * 6 + 1);
  EXPECT_EQ(Count(gpt2, "attention"), 2);
  EXPECT_EQ(Count(gpt2, "gelu"), 2);
  EXPECT_EQ(Count(gpt2, "layer_norm"), 2 * 2 + 1);
  // Positions; per layer the biases of q, k, v and up, and two residual sums.
  EXPECT_EQ(Count(gpt2, "add"), 1 + 2 * 6);
  EXPECT_EQ(Count(gpt2, "rope") + Count(gpt2, "rms_norm") + Count(gpt2, "swiglu"), 0);
  const Graph llama = Build(TinyLlama());
  EXPECT_EQ(Count(llama, "lookup"), 1);
  EXPECT_EQ(Count(llama, "matmul"), 2 * 7 + 1);
  EXPECT_EQ(Count(llama, "rope"), 2 * 2);
  EXPECT_EQ(Count(llama, "swiglu"), 2);
  EXPECT_EQ(Count(llama, "rms_norm"), 2 * 2 + 1);
  EXPECT_EQ(Count(llama, "add"), 2 * 2);
  EXPECT_EQ(Count(llama, "gelu") + Count(llama, "layer_norm"), 0);
}

// Name -> type of every data input.
std::map<std::string, std::string> DataInputs(const Graph& graph) {
  std::map<std::string, std::string> inputs;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kData) continue;
    inputs[graph.value(input.value).name] = graph.type(input.value).ToString();
  }
  return inputs;
}

TEST(ModelsTest, BertSeesBothSidesAndNoPadding) {
  const Graph bert = Build(TinyBert());
  EXPECT_EQ(Count(bert, "segment_attention"), 2);
  EXPECT_EQ(Count(bert, "attention"), 0);
  EXPECT_EQ(Count(bert, "layer_norm"), 1 + 2 * 2 + 1);
  EXPECT_EQ(Count(bert, "lookup"), 3);
  EXPECT_EQ(Count(bert, "counted"), 1);
  for (const Node& node : bert.nodes()) {
    if (node.op->name == "segment_attention") {
      EXPECT_EQ(node.attrs.Int("causal"), 0);
    }
  }
  const std::string indices = "i64[batch=2,seq=6]";
  EXPECT_EQ(
      DataInputs(bert),
      (std::map<std::string, std::string>{
          {"mask", indices}, {"segments", indices}, {"targets", indices}, {"tokens", indices}}));
}

TEST(ModelsTest, DocumentsAreSegments) {
  ModelOptions options;
  options.mask_documents = options.restart_positions = true;
  const Graph gpt2 = *BuildModel(TinyGpt2(), 2, 6, options);
  EXPECT_EQ(Count(gpt2, "segment_attention"), 2);
  EXPECT_EQ(Count(gpt2, "attention"), 0);
  EXPECT_EQ(Count(gpt2, "lookup"), 2);
  const std::string indices = "i64[batch=2,seq=6]";
  const auto inputs = DataInputs(gpt2);
  EXPECT_EQ(inputs.at("documents"), indices);
  EXPECT_EQ(inputs.at("positions"), indices);
  const auto why = [&](const ModelConfig& config) {
    return std::string(BuildModel(config, 2, config.seq_length, options).status().message());
  };
  EXPECT_TRUE(absl::StrContains(why(TinyLlama()), "llama has no table of positions"));
  EXPECT_TRUE(absl::StrContains(why(TinyBert()), "bert reads no text of documents one behind"));
  EXPECT_TRUE(absl::StrContains(why(TinyBert()), "with which positions could restart"));
  options.restart_positions = false;
  EXPECT_EQ(Count(*BuildModel(TinyLlama(), 2, 6, options), "segment_attention"), 2);
}

TEST(ModelsTest, VitReadsPatches) {
  const Graph vit = *BuildModel(TinyVit(), 2, 11);
  EXPECT_EQ(DataInputs(vit),
            (std::map<std::string, std::string>{{"labels", "i64[batch=2]"},
                                                {"patches", "f32[batch=2,patch=10,pixel=12]"},
                                                {"weights", "f32[batch=2]"}}));
  EXPECT_EQ(Count(vit, "lookup"), 1) << "positions";
  EXPECT_EQ(BuildModel(TinyVit(), 2, 10).status().message(),
            "sequences of 10, but an image is 11: its patches and the class row");
}

TEST(ModelsTest, RopeScalingReachesTheOp) {
  ModelConfig config = TinyLlama();
  config.rope_theta = 500;
  config.rope_scaling = Llama3RopeScaling{4, 1, 2, 64};
  const Graph graph = Build(config);
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "rope") continue;
    EXPECT_EQ(node.attrs, (Attrs{{"theta", 500.0},
                                 {"inverse", int64_t{0}},
                                 {"factor", 4.0},
                                 {"low", 1.0},
                                 {"high", 2.0},
                                 {"original", 64.0}}));
  }
}

// Nodes stand in the order of the model's layers, and of all values made up to a cut between two
// neighbours only the residual stream is used behind it.
TEST(ModelsTest, OnlyTheResidualStreamCrossesACut) {
  for (const ModelConfig& config :
       {TinyGpt2(), TinyLlama(), TinyBert(), WithDropout(TinyGpt2()), WithDropout(TinyLlama())}) {
    const Graph graph = Build(config);
    int layer = kEmbeddingLayer;
    for (const Node& node : graph.nodes()) {
      EXPECT_GE(node.layer, layer);
      layer = node.layer;
    }
    EXPECT_EQ(layer, 2);
    EXPECT_EQ(graph.num_layers(), 2);
    for (int cut = kEmbeddingLayer; cut < 2; ++cut) {
      std::set<ValueId> crossing;
      for (const Node& node : graph.nodes()) {
        if (node.layer <= cut) continue;
        for (ValueId id : node.inputs) {
          const NodeId producer = graph.value(id).producer;
          if (producer != kNone && graph.node(producer).layer <= cut) crossing.insert(id);
        }
      }
      ASSERT_EQ(crossing.size(), 1u) << "cut behind layer " << cut;
      EXPECT_EQ(graph.type(*crossing.begin()).ToString(), "f32[batch=2,seq=6,embed=16]");
    }
  }
}

TEST(ModelsTest, NodesHaveLocationsAndOrigins) {
  const Graph graph = Build(TinyGpt2());
  for (const Node& node : graph.nodes()) {
    ASSERT_NE(node.loc.file, kNone);
    EXPECT_EQ(graph.files()[static_cast<size_t>(node.loc.file)], "frontends/models.cc");
    EXPECT_GT(node.loc.line, 0);
    const char* part = node.layer < 0 ? "embedding" : node.layer < 2 ? "layers." : "head";
    EXPECT_TRUE(absl::StartsWith(node.origin, part)) << node.origin;
    EXPECT_EQ(node.phase, Phase::kForward);
  }
}

TEST(ModelsTest, BadSizesAreErrors) {
  absl::StatusOr<Graph> graph = BuildModel(TinyGpt2(), 2, 9);
  EXPECT_EQ(graph.status().message(), "sequences of 9 tokens, but the model has 8 positions");
  graph = BuildModel(TinyGpt2(), 0, 6);
  EXPECT_TRUE(absl::StrContains(graph.status().message(), "dim `batch` has size 0"));
  graph = BuildModel(TinyGpt2(), int64_t{1} << 60, 6);
  EXPECT_TRUE(absl::StrContains(graph.status().message(), "more than 1125899906842624 elements"));
  graph = BuildModel(ModelConfig(), 1, 0);
  EXPECT_EQ(graph.status().message(), "0 layers; a model has 1 to 2048");
  ModelConfig config = TinyLlama();
  config.kv_heads = 3;
  EXPECT_FALSE(BuildModel(config, 2, 6).ok());
  config = TinyGpt2();
  config.hidden_dropout = std::nan("");
  EXPECT_FALSE(BuildModel(config, 2, 6).ok());
}

// Products behind the last attention of a model that is asked are of one row.
TEST(ModelsTest, TheLastLayerOfAnAskedModelEndsInOneRow) {
  for (ModelConfig config : {TinyGpt2(), TinyLlama()}) {
    for (const bool parallel : {false, true}) {
      config.parallel_residual = parallel;
      ModelOptions options;
      options.next_token = NextToken::kPrompt;
      options.kept = 8;
      const Graph graph = Build(config, options);
      const auto type_of = [&](const std::string& name) {
        return graph.type(graph.FindValue(name)).ToString();
      };
      const std::string rows = "f32[batch=2,seq=6,embed=16]", row = "f32[batch=2,embed=16]";
      EXPECT_EQ(type_of("layers.0.attention.out.matmul"), rows);
      EXPECT_EQ(type_of("layers.0.mlp.down.matmul"), rows);
      EXPECT_EQ(type_of("layers.1.attention.out.matmul"), row);
      EXPECT_EQ(type_of("layers.1.mlp.down.matmul"), row);
      options.next_token = NextToken::kToken;
      const absl::StatusOr<Graph> token = BuildModel(config, 2, 1, options);
      ASSERT_TRUE(token.ok()) << token.status();
      EXPECT_EQ(token->type(token->FindValue("layers.1.mlp.down.matmul")).ToString(), row);
    }
  }
}

}  // namespace
}  // namespace mgc
