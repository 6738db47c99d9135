#include "passes/graph/dim_classes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/check.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

constexpr char kTwoLayers[] = R"(graph @g logical layers=2 (
  param %layers.0.up: f32[16,64],
  param %layers.0.down: f32[64,16],
  param %layers.1.up: f32[16,64],
  param %layers.1.down: f32[64,16],
  data %x: f32[8,16],
  data %weights: f32[8]
) {
  %a0 = matmul(%x, %layers.0.up) {spec="b k, k n -> b n"} layer 0
  %b0 = matmul(%a0, %layers.0.down) {spec="b k, k n -> b n"} layer 0
  %y0 = add(%x, %b0) layer 0
  %a1 = matmul(%y0, %layers.1.up) {spec="b k, k n -> b n"} layer 1
  %b1 = matmul(%a1, %layers.1.down) {spec="b k, k n -> b n"} layer 1
  %y1 = add(%y0, %b1) layer 1
  %rows = reduce_sum(%y1) {dims=[1]} layer 2
  %loss = weighted_sum(%rows, %weights) layer 2
  %count = total(%weights) layer 2
  loss "loss" = %loss
  report "count" = %count
})";

std::string TypeOf(const Graph& graph, const char* value) {
  return graph.type(graph.FindValue(value)).ToString();
}

// `name=size of so many dims`, a class each.
std::vector<std::string> Shown(const DimClasses& classes) {
  std::vector<std::string> shown;
  for (const DimClass& c : classes.classes()) {
    shown.push_back(absl::StrCat(c.name, "=", c.size, " of ", c.dims.size()));
  }
  return shown;
}

// What a residual sum lines up is one class over all layers; what lives in a layer has one in each,
// under one name.
TEST(DimClassesTest, DimsOfOneFactorAreOneClass) {
  const Graph graph = ReadGraph(kTwoLayers);
  EXPECT_EQ(Shown(DimClasses(graph)),
            (std::vector<std::string>{"layers.*.up#0=16 of 9", "layers.*.up#1=64 of 3",
                                      "layers.*.up#1=64 of 3", "batch=8 of 9"}));
}

TEST(DimClassesTest, NamedDimsNameTheirClass) {
  const Graph graph = ReadGraph(R"(graph @g logical layers=1 (
    param %w: f32[16,mlp=64],
    param %v: f32[64,16],
    data %x: f32[8,embed=16]
  ) {
    %h = matmul(%x, %w) {spec="b k, k n -> b n"} layer 0
    %y = matmul(%h, %v) {spec="b k, k n -> b n"} layer 0
    %l = total(%y) layer 0
    loss "loss" = %l
  })");
  const Graph named = NameDims(graph);
  EXPECT_EQ(TypeOf(named, "w"), "f32[embed=16,mlp=64]");
  EXPECT_EQ(TypeOf(named, "v"), "f32[mlp=64,v#1=16]");
  EXPECT_EQ(TypeOf(named, "y"), "f32[batch=8,v#1=16]");
  EXPECT_EQ(TypeOf(NameDims(named), "v"), TypeOf(named, "v"));
  EXPECT_TRUE(CheckGraph(named).ok());
}

// Rows made of samples and tokens are neither; split again they are what they were.
TEST(DimClassesTest, AMergedDimIsAClassOfItsOwn) {
  const Graph graph = ReadGraph(R"(graph @g logical layers=1 (
    param %w: f32[16,16],
    data %x: f32[4,8,16]
  ) {
    %r = reshape(%x) {sizes=[32,16]} layer 0
    %h = matmul(%r, %w) {spec="r k, k n -> r n"} layer 0
    %s = reshape(%h) {sizes=[4,8,16]} layer 0
    %y = add(%x, %s) layer 0
    %l = total(%y) layer 0
    loss "loss" = %l
  })");
  const Graph named = NameDims(graph);
  EXPECT_EQ(TypeOf(named, "x"), "f32[batch=4,x#1=8,w#0=16]");
  EXPECT_EQ(TypeOf(named, "r"), "f32[r#0=32,w#0=16]");
  EXPECT_EQ(TypeOf(named, "s"), TypeOf(named, "x"));
  EXPECT_TRUE(CheckGraph(named).ok());
}

// Sums of parameters that are declared in reverse: each sum finds the class under another dim than
// the one before it. To walk through all of these for each dim takes minutes.
TEST(DimClassesTest, ParametersDeclaredInReverse) {
  constexpr int kParams = 500'000;
  GraphBuilder builder("g");
  const TensorType type{DType::kF32, {{1, "", 1}}};
  std::vector<ValueId> params;
  params.reserve(kParams);
  for (int p = 0; p < kParams; ++p) {
    params.push_back(builder.AddInput(absl::StrCat("p", p), type, InputKind::kParam));
  }
  std::reverse(params.begin(), params.end());
  ValueId sum = params[0];
  for (int p = 1; p < kParams; ++p) {
    sum = builder.Emit("add", {sum, params[static_cast<size_t>(p)]}, {}, Node(),
                       absl::StrCat("sum", p));
  }
  EXPECT_EQ(DimClasses(std::move(builder).Finish()).classes().size(), 1u);
}

}  // namespace
}  // namespace mgc
