#include "graph/verify/shrink/equal_layers.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/types/layer_names.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;

constexpr int kLayers = 6;
TensorType VectorType() {
  TensorType type;
  type.dtype = DType::kF32;
  type.dims.resize(1);
  type.dims[0].name = "embed";
  type.dims[0].size = 4;
  return type;
}

// What a test changes of a layer.
struct LayerSpec {
  int layer = 0;
  double factor = 2;
  std::string key = "drop";  // behind the layer's name
  ValueId before = kNone;    // what the layer before leaves
  ValueId from = kNone;      // what is added: the layer's own parameter
  bool is_output = false;
};

// Each layer scales what comes, drops some of it and adds a parameter.
Graph ModelOf(const std::function<void(LayerSpec*, const std::vector<ValueId>&)>& change) {
  GraphBuilder builder("model");
  builder.set_num_layers(kLayers);
  const ValueId x = builder.AddInput("x", VectorType(), InputKind::kData);
  std::vector<ValueId> params;
  for (int layer = 0; layer < kLayers; ++layer) {
    params.push_back(builder.AddInput(absl::StrCat(LayerPrefix(layer), "w"), VectorType(),
                                      InputKind::kParam, {{"init", std::string("ones")}}));
  }
  std::vector<ValueId> left = {x};
  for (int layer = 0; layer < kLayers; ++layer) {
    LayerSpec spec;
    spec.layer = layer;
    spec.before = left.back();
    spec.from = params[static_cast<size_t>(layer)];
    change(&spec, left);
    Node like;
    like.layer = layer;
    const std::string prefix = LayerPrefix(layer);
    const ValueId scaled = builder.Emit("scale", {spec.before}, {{"value", spec.factor}}, like,
                                        absl::StrCat(prefix, "scaled"));
    const ValueId dropped =
        builder.Emit("dropout", {scaled}, {{"key", absl::StrCat(prefix, spec.key)}, {"p", 0.1}},
                     like, absl::StrCat(prefix, "dropped"));
    left.push_back(
        builder.Emit("add", {dropped, spec.from}, {}, like, absl::StrCat(prefix, "sum")));
    if (spec.is_output) {
      builder.AddOutput({left.back(), OutputKind::kReport, absl::StrCat(prefix, "report"), kNone});
    }
  }
  builder.AddOutput({left.back(), OutputKind::kReport, "last", kNone});
  return std::move(builder).Finish();
}

std::vector<int> Repeating(const Graph& model) {
  const EqualLayers layers(model);
  std::vector<int> repeating;
  for (int layer = 0; layer < kLayers; ++layer) {
    if (layers.Repeats(layer)) repeating.push_back(layer);
  }
  return repeating;
}

void Nothing(LayerSpec*, const std::vector<ValueId>&) {}

// The last one makes an output.
TEST(EqualLayersTest, LayersDifferByTheirNumberAlone) {
  EXPECT_THAT(Repeating(ModelOf(Nothing)), ElementsAre(1, 2, 3, 4));
}

TEST(EqualLayersTest, AnotherConstant) {
  EXPECT_THAT(Repeating(ModelOf([](LayerSpec* spec, const std::vector<ValueId>&) {
                if (spec->layer == 2) spec->factor = 2.0000000000000004;
              })),
              ElementsAre(1, 4));
}

TEST(EqualLayersTest, AnotherStreamOfRandomNumbers) {
  EXPECT_THAT(Repeating(ModelOf([](LayerSpec* spec, const std::vector<ValueId>&) {
                if (spec->layer == 2) spec->key = "other";
              })),
              ElementsAre(1, 4));
}

// Layers 2 and 3 share one: they are equal, to each other alone.
TEST(EqualLayersTest, AnotherLayersParameter) {
  EXPECT_THAT(Repeating(ModelOf([](LayerSpec* spec, const std::vector<ValueId>&) {
                if (spec->layer == 3) --spec->from;
              })),
              ElementsAre(1, 3));
}

TEST(EqualLayersTest, OneParameterOfAll) {
  EXPECT_THAT(Repeating(ModelOf(
                  [](LayerSpec* spec, const std::vector<ValueId>&) { spec->from -= spec->layer; })),
              ElementsAre(1, 2, 3, 4));
}

// Layer 3 reads what layer 1 leaves, as layer 2 does: nobody repeats layer 1, nor does layer 4,
// which reads what layer 3 leaves.
TEST(EqualLayersTest, ASkip) {
  EXPECT_THAT(Repeating(ModelOf([](LayerSpec* spec, const std::vector<ValueId>& left) {
                if (spec->layer == 3) spec->before = left[2];
              })),
              ElementsAre(3));
}

TEST(EqualLayersTest, AnOutputOfALayer) {
  EXPECT_THAT(Repeating(ModelOf([](LayerSpec* spec, const std::vector<ValueId>&) {
                spec->is_output = spec->layer == 2;
              })),
              ElementsAre(1, 4));
}

TEST(EqualLayersTest, WhatComesBehindAGapReadsWhatComesBeforeIt) {
  const Graph model = ModelOf(Nothing);
  const Graph few = EqualLayers(model).WithoutLayers({{2, 3}});
  EXPECT_EQ(few.nodes().size(), model.nodes().size() - 6);
  EXPECT_EQ(few.FindValue("layers.2.w"), kNone);
  const ValueId scaled = few.FindValue("layers.4.scaled");
  ASSERT_NE(scaled, kNone);
  const Node& reader = few.node(few.value(scaled).producer);
  EXPECT_EQ(few.value(reader.inputs[0]).name, "layers.1.sum");
  EXPECT_EQ(few.value(few.outputs()[0].value).name, "layers.5.sum");
}

}  // namespace
}  // namespace mgc
