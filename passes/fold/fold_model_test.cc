#include "passes/fold/fold_model.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"
#include "passes/fold/layer_runs.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

std::string Name(int layer, absl::string_view rest) {
  return absl::StrCat("layers.", layer, ".", rest);
}

// What layer `layer` reads of the one before it.
std::string Before(int layer) { return layer == 0 ? "embedding" : Name(layer - 1, "y"); }

std::string Params(int layer) {
  return absl::StrCat("param %", Name(layer, "w"), ": f32[embed=8,embed=8] {init=\"zeros\"},\n");
}

std::string Nodes(int layer) {
  const std::string in = absl::StrCat("} layer ", layer, "\n");
  return absl::StrCat("%", Name(layer, "h"), " = matmul(%", Before(layer), ", %", Name(layer, "w"),
                      ") {spec=\"b e, e f -> b f\"", in, "%", Name(layer, "y"), " = add(%",
                      Name(layer, "h"), ", %", Before(layer), ") layer ", layer, "\n");
}

// How a model of equal layers is said, of which some may be said otherwise.
struct Said {
  int layers = 6;
  std::function<std::string(int layer)> params = Params;
  std::function<std::string(int layer)> nodes = Nodes;
  std::string outputs = "";
};

Graph Model(const Said& said) {
  std::string params;
  std::string nodes;
  for (int layer = 0; layer < said.layers; ++layer) {
    absl::StrAppend(&params, said.params(layer));
    absl::StrAppend(&nodes, said.nodes(layer));
  }
  const std::string head = absl::StrCat(" layer ", said.layers, "\n");
  return ReadGraph(absl::StrCat(
      "graph @chain logical layers=", said.layers, " (\n", params,
      "param %last: f32[embed=8] {init=\"ones\"},\ndata %x: f32[batch=4,embed=8]\n) {\n",
      "%embedding = gelu(%x) layer embedding\n", nodes, "%scaled = mul(%",
      Name(said.layers - 1, "y"), ", %last)", head, "%loss = total(%scaled)", head,
      "loss \"loss\" = %loss\n", said.outputs, "}\n"));
}

// `0 1 1 2`: what stands for each layer; empty where nothing is folded.
std::string Kept(const Graph& model, const Recomputation& recomputation = {}) {
  const absl::optional<FoldedModel> folded = ModelFolder(model).Fold(recomputation);
  if (!folded.has_value()) return "";
  EXPECT_EQ(folded->graph.num_layers(), folded->layers.num_kept());
  std::string kept;
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    absl::StrAppend(&kept, layer == 0 ? "" : " ", folded->layers.KeptFor(layer));
  }
  return kept;
}

TEST(FoldModelTest, KeepsTheFirstTwoAndTheLast) {
  const Graph model = Model({});
  const absl::optional<FoldedModel> folded = ModelFolder(model).Fold();
  ASSERT_TRUE(folded.has_value());
  EXPECT_EQ(Listing(folded->graph), Listing(Model({3})));
  EXPECT_EQ(Kept(model), "0 1 1 1 1 2");
  for (const int layer : {0, 1, 5})
    EXPECT_EQ(folded->layers.FirstOf(folded->layers.KeptFor(layer)), layer);
  EXPECT_EQ(folded->layers.CountOf(1), 4);
  EXPECT_EQ(folded->layers.KeptFor(6), 3);  // the head
  EXPECT_EQ(Kept(Model({4})), "0 1 1 2");
}

TEST(FoldModelTest, LayersOfAKindStandForEachOtherBetweenTheSameKinds) {
  const auto kept = [](int layers, const char* recomputation) {
    return Kept(Model({layers}), ParseRecomputation(recomputation).value());
  };
  EXPECT_EQ(kept(8, "full,none,full,none,full,none,full,none"), "0 1 2 3 2 1 4 5");
  EXPECT_EQ(kept(10, "full,none,full,none,full,none,full,none,full,none"), "0 1 2 3 2 1 2 1 4 5");
  // In whatever order they come: the way to the last one leads over a layer of the second run.
  EXPECT_EQ(kept(21, "none,full*4,none,full*4,none,full*4,none,full*4,selective"),
            "0 1 2 2 3 4 1 2 2 3 4 1 2 2 3 4 5 2 2 6 7");
  EXPECT_EQ(kept(10, "full*5,none*5"), "0 1 1 1 2 3 4 4 4 5");
  // What would be kept is all.
  EXPECT_EQ(kept(6, "full,none,full,none,full,none"), "");
}

TEST(FoldModelTest, NothingIsSmaller) {
  EXPECT_EQ(Kept(Model({3})), "");
  EXPECT_EQ(Kept(Model({1})), "");
}

// Names of nodes stay those of their layers, numbers apart.
TEST(FoldModelTest, LayersBehindARunAreRenumbered) {
  Said said{9};
  said.nodes = [](int layer) {
    if (layer != 5) return Nodes(layer);
    return absl::StrCat("%", Name(5, "h"), " = gelu(%", Name(4, "y"), ") layer 5\n%", Name(5, "y"),
                        " = mul(%", Name(5, "h"), ", %", Name(5, "g"), ") layer 5\n");
  };
  said.params = [](int layer) {
    if (layer != 5) return Params(layer);
    return absl::StrCat("param %", Name(5, "g"), ": f32[embed=8] {init=\"ones\"},\n");
  };
  const Graph model = Model(said);
  EXPECT_EQ(Kept(model), "0 1 1 1 2 3 4 5 6");
  const Lines listing = Listing(ModelFolder(model).Fold()->graph);
  EXPECT_EQ(listing[5], "layers.2.h = matmul(layers.1.y, layers.2.w)");
  EXPECT_EQ(listing[7], "layers.3.h = gelu(layers.2.y)");
  EXPECT_EQ(listing[8], "layers.3.y = mul(layers.3.h, layers.3.g)");
}

TEST(FoldModelTest, OtherAttributesAreAnotherLayer) {
  Said said{9};
  said.params = [](int layer) {
    return absl::StrCat("param %", Name(layer, "w"), ": f32[embed=8,embed=8] {init=\"",
                        layer == 8 ? "ones" : "zeros", "\"},\n");
  };
  EXPECT_EQ(Kept(Model(said)), "0 1 1 1 1 1 1 2 3");
}

TEST(FoldModelTest, WhatIsReadFartherAwayFoldsNothing) {
  Said said;
  said.nodes = [](int layer) {
    if (layer != 5) return Nodes(layer);
    return absl::StrCat("%", Name(5, "y"), " = add(%", Name(4, "y"), ", %", Name(1, "y"),
                        ") layer 5\n");
  };
  EXPECT_EQ(Kept(Model(said)), "");
}

TEST(FoldModelTest, TwoValuesBetweenLayersFoldNothing) {
  Said said;
  said.nodes = [](int layer) {
    const std::string second = layer == 0 ? "embedding" : Name(layer - 1, "h");
    return absl::StrCat(Nodes(layer), "%", Name(layer, "z"), " = mul(%", Name(layer, "y"), ", %",
                        second, ") layer ", layer, "\n");
  };
  EXPECT_EQ(Kept(Model(said)), "");
}

TEST(FoldModelTest, SharedParametersFoldNothing) {
  Said said;
  said.params = [](int layer) { return layer == 3 ? "" : Params(layer); };
  said.nodes = [](int layer) {
    if (layer != 3) return Nodes(layer);
    return absl::StrCat("%", Name(3, "y"), " = matmul(%", Name(2, "y"), ", %", Name(2, "w"),
                        ") {spec=\"b e, e f -> b f\"} layer 3\n");
  };
  EXPECT_EQ(Kept(Model(said)), "");
}

TEST(FoldModelTest, LayersWithOutputsAreKept) {
  Said said{10};
  said.nodes = [](int layer) {
    return absl::StrCat(Nodes(layer), "%", Name(layer, "sum"), " = total(%", Name(layer, "h"),
                        ") layer ", layer, "\n");
  };
  said.outputs = absl::StrCat("report \"four\" = %", Name(4, "sum"), "\n");
  EXPECT_EQ(Kept(Model(said)), "0 1 1 2 3 4 5 5 5 6");
}

// Their gradients' squares would lie in another order in the norm's vector.
TEST(FoldModelTest, ParametersLieLayerByLayer) {
  Said said;
  said.params = [](int layer) { return Params(5 - layer); };
  EXPECT_EQ(Kept(Model(said)), "");
}

// `a.5.7.w` of layer 7 would be `a.5.5.w` of the fifth, and fold to `a.*.5.w`.
TEST(FoldModelTest, NamesFoldAsTheyDid) {
  Said said{10};
  said.params = [](int layer) {
    return absl::StrCat("param %a.5.", layer, ".w: f32[embed=8,embed=8] {init=\"zeros\"},\n");
  };
  said.nodes = [](int layer) {
    return absl::StrCat("%", Name(layer, "y"), " = matmul(%", Before(layer), ", %a.5.", layer,
                        ".w) {spec=\"b e, e f -> b f\"} layer ", layer, "\n");
  };
  EXPECT_EQ(Kept(Model(said)), "");
  said.layers = 5;
  EXPECT_EQ(Kept(Model(said)), "0 1 1 1 2");
}

TEST(LayerRunsTest, RunsAreTheLongest) {
  Said said{5};
  said.nodes = [](int layer) {
    if (layer != 3) return Nodes(layer);
    return absl::StrCat("%", Name(3, "y"), " = matmul(%", Name(2, "y"), ", %", Name(3, "w"),
                        ") {spec=\"b e, e f -> b f\"} layer 3\n");
  };
  const Graph model = Model(said);
  const LayerRuns found(model);
  ASSERT_TRUE(found.IsLayered());
  std::string runs;
  for (const LayerRun& run : found.Runs()) absl::StrAppend(&runs, run.first, "-", run.last, " ");
  EXPECT_EQ(runs, "0-2 3-3 4-4 ");
}

TEST(TreatsLayersAlikeTest, ScopesNameNoNumber) {
  const LayerPlacement one{1, 1, {{true, true, 0, 6, 0}}, {{0, 0}}};
  const auto strategy = [](absl::string_view row) {
    const auto parsed = ParseStrategy(absl::StrCat("strategy @s {\n", row, "\n}\n"), "text");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : StrategySpec();
  };
  EXPECT_TRUE(TreatsLayersAlike(strategy("row * { batch -> dp }"), one));
  EXPECT_TRUE(TreatsLayersAlike(strategy("row * in \"layers.*.w\" { batch -> dp }"), one));
  EXPECT_FALSE(TreatsLayersAlike(strategy("row * in \"layers.3.*\" { batch -> dp }"), one));
}

TEST(TreatsLayersAlikeTest, StagesAreNotEmpty) {
  const StrategySpec strategy;
  const LayerPlacement ends{
      2, 1, {{true, false, 0, 0, 0}, {false, true, 0, 6, 0}}, {{0, 0}, {1, 0}}};
  EXPECT_TRUE(TreatsLayersAlike(strategy, ends));
  const LayerPlacement empty{
      3,
      1,
      {{true, false, 0, 3, 0}, {false, false, 3, 0, 0}, {false, true, 3, 3, 0}},
      {{0, 0}, {1, 0}, {2, 0}}};
  EXPECT_FALSE(TreatsLayersAlike(strategy, empty));
}

}  // namespace
}  // namespace mgc
