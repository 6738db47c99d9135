#include "graph/types/layer_names.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(LayerNamesTest, OnlyTheLayersOwnNumberIsFolded) {
  EXPECT_EQ(FoldName("layers.3.mlp.up", 3, 8), "layers.*.mlp.up");
  EXPECT_EQ(FoldName("layers.13.mlp.up", 3, 16), "layers.13.mlp.up");
  EXPECT_EQ(FoldName("layers.3.mlp.up", 4, 8), "layers.3.mlp.up");
  EXPECT_EQ(FoldName("embedding.word", -1, 8), "embedding.word");
  EXPECT_EQ(FoldName("layers.8.x", 8, 8), "layers.8.x");  // the head is no layer
  EXPECT_EQ(FoldName("gradient of layers.3.x in layers.3.y", 3, 8),
            "gradient of layers.*.x in layers.*.y");
}

TEST(LayerNamesTest, ANumberMayStandBehindAnotherWord) {
  EXPECT_EQ(FoldName("h.3.c_attn.w.3", 3, 8), "h.*.c_attn.w.3");
  EXPECT_EQ(FoldName("h.1.c_attn.w.3", 1, 8), "h.*.c_attn.w.3");
  EXPECT_EQ(FoldName("h.0.layers.0.up", 0, 8), "h.0.layers.*.up");
  EXPECT_EQ(FoldName("gradient of x in blocks.3", 3, 8), "gradient of x in blocks.*");
  EXPECT_EQ(FoldName("3", 3, 8), "3");  // the name of something else
  EXPECT_EQ(FoldName("h3.x", 3, 8), "h3.x");
}

TEST(LayerNamesTest, APatternStandsForTheNamesOfAllLayers) {
  EXPECT_EQ(NameForLayer("layers.*.mlp.up", 3), "layers.3.mlp.up");
  EXPECT_EQ(NameForLayer(LayerPrefix(2) + "x", 7), "layers.2.x");
  EXPECT_EQ(LayerScope(12), "layers.12");
}

TEST(LayerNamesTest, AStarOfANamesOwnStays) {
  EXPECT_EQ(FoldName("layers.3.a*b", 3, 8), "layers.*.a**b");
  EXPECT_EQ(NameForLayer("layers.*.a**b", 5), "layers.5.a*b");
  for (const char* name :
       {"*", "**", "***", "layers.*.x", "layers.3.*", "*layers.3.x*", "layers.3.*.layers.3.**",
        "a*layers.3.*b", "h.3.x", "x.2.3", "*.3 .3."}) {
    for (int layer : {-1, 2, 3, 8}) {
      EXPECT_EQ(NameForLayer(FoldName(name, layer, 8), layer), name) << "of layer " << layer;
    }
  }
}

}  // namespace
}  // namespace mgc
