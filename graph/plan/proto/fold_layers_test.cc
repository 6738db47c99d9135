#include "graph/plan/proto/fold_layers.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/proto/wire.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

const TensorType kType{DType::kF32, {{4, "embed", 1}}};

// x, then per layer `x = gelu(x * w) + table`, the head a sum; `odd` names a layer whose origin is
// another.
Graph Layers(int layers, int odd = -1) {
  GraphBuilder builder("stack");
  builder.set_num_layers(layers);
  Node like;
  like.loc = {builder.AddFile("model.cc"), 1, 2};
  ValueId x = builder.AddInput("x", kType, InputKind::kData);
  const ValueId table = builder.AddInput("table", kType, InputKind::kParam);
  for (int i = 0; i < layers; ++i) {
    const std::string prefix = absl::StrCat("layers.", i, ".");
    like.layer = i;
    like.origin = absl::StrCat(prefix, i == odd ? "odd" : "mlp");
    const ValueId w = builder.AddInput(prefix + "w", kType, InputKind::kParam);
    x = builder.Emit("mul", {x, w}, {}, like, prefix + "up");
    x = builder.Emit("gelu", {x}, {}, like, prefix + "act");
    x = builder.Emit("add", {x, table}, {}, like, prefix + "out");
  }
  like.layer = layers;
  like.origin = "head";
  const ValueId loss = builder.Emit("total", {x}, {}, like, "loss");
  GraphOutput output;
  output.kind = OutputKind::kLoss;
  output.value = loss;
  builder.AddOutput(output);
  return std::move(builder).Finish();
}

std::string Bytes(const Graph& graph) {
  wire::FoldedGraph message;
  FoldLayers(graph, &message);
  return message.SerializeAsString();
}

TEST(FoldLayersTest, TheSecondLayerStandsForAllBehindIt) {
  wire::FoldedGraph message;
  FoldLayers(Layers(40), &message);
  EXPECT_EQ(message.fold().copies(), 39);
  EXPECT_EQ(message.graph().nodes_size(), 2 * 3 + 1);
  EXPECT_EQ(message.graph().inputs_size(), 2 + 2);
  EXPECT_LT(message.ByteSizeLong(), size_t{1100});
}

TEST(FoldLayersTest, UnfoldsToTheSameGraph) {
  for (int layers : {1, 2, 3, 40}) {
    for (int odd : {-1, 0, 1, 2, 20, 39}) {
      const Graph graph = Layers(layers, odd);
      wire::FoldedGraph message;
      FoldLayers(graph, &message);
      const absl::StatusOr<wire::Graph> whole = UnfoldLayers(message);
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(whole->nodes_size(), static_cast<int>(graph.nodes().size()));
      const absl::StatusOr<Graph> read = FromWire(*whole);
      ASSERT_TRUE(read.ok()) << read.status();
      // Numbered anew, it keeps its numbers.
      wire::Graph again;
      ToWire(*read, &again);
      EXPECT_EQ(again.SerializeAsString(), whole->SerializeAsString());
      EXPECT_EQ(Bytes(*read), Bytes(graph)) << layers << " layers, odd " << odd;
      EXPECT_EQ(read->node(0).inputs.size(), 2u);
      EXPECT_EQ(read->value(read->nodes().back().outputs[0]).name, "loss");
      const Node& last = read->node(static_cast<NodeId>(read->nodes().size()) - 2);
      EXPECT_EQ(last.layer, layers - 1);
      EXPECT_EQ(read->value(last.outputs[0]).name, absl::StrCat("layers.", layers - 1, ".out"));
    }
  }
}

TEST(FoldLayersTest, DamagedCountsAreRefused) {
  const auto error = [](const std::function<void(wire::FoldedGraph*)>& damage) {
    wire::FoldedGraph message;
    FoldLayers(Layers(40), &message);
    damage(&message);
    const absl::StatusOr<wire::Graph> whole = UnfoldLayers(message);
    return whole.ok() ? std::string() : std::string(whole.status().message());
  };
  using Fold = wire::LayerFold;
  const auto fold = [&](const std::function<void(Fold*)>& damage) {
    return error([&](wire::FoldedGraph* m) { damage(m->mutable_fold()); });
  };
  EXPECT_EQ(fold([](Fold*) {}), "");
  EXPECT_THAT(fold([](Fold* f) { f->set_copies(0); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(fold([](Fold* f) { f->set_copies(1); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(fold([](Fold* f) { f->set_copies(2147483647); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(fold([](Fold* f) { f->set_copies(500000); }), HasSubstr("the model unfolds to"));
  EXPECT_THAT(fold([](Fold* f) { f->set_nodes(8); }), HasSubstr("outside of its graph"));
  EXPECT_THAT(fold([](Fold* f) { f->set_nodes(0); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(fold([](Fold* f) { f->set_first_node(-1); }), HasSubstr("outside of its graph"));
  EXPECT_THAT(fold([](Fold* f) { f->set_inputs(-1); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(fold([](Fold* f) { f->set_first_input(9); }), HasSubstr("outside of its graph"));
  EXPECT_THAT(fold([](Fold* f) { f->set_first_result(0); }), HasSubstr("outside of its graph"));
  EXPECT_THAT(fold([](Fold* f) { f->set_first_result(-2147483647); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(error([](wire::FoldedGraph* m) {
                m->mutable_graph()->mutable_nodes(4)->set_origin(std::string(8 << 20, 'x'));
              }),
              HasSubstr("unfolds to more than 268435456 bytes [wire_c5]"));
}

}  // namespace
}  // namespace mgc
