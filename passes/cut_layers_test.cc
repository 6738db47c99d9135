#include "passes/cut_layers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

// Of a mesh, and a stage for each of its pp.
CutRequest RequestOn(const std::vector<MeshAxis>& axes) {
  CutRequest request;
  request.mesh = *Mesh::Create(axes);
  for (const MeshAxis& axis : axes) {
    if (axis.name != "pp") continue;
    for (int s = 0; s < axis.size; ++s) request.stages.push_back({s, 0});
  }
  return request;
}

// `value=bytes` of every place.
std::string BytesText(const Graph& graph, const std::vector<MeshAxis>& axes) {
  const auto points = FindCuts(graph, RequestOn(axes), *FindMachinePreset("h100x8"));
  EXPECT_TRUE(points.ok()) << points.status();
  std::vector<std::string> places;
  for (const CutPoint& point : *points) {
    places.push_back(absl::StrCat(point.value, "=", point.bytes));
  }
  return absl::StrJoin(places, " ");
}

std::string ChosenText(const Graph& graph, const std::vector<MeshAxis>& axes) {
  const auto points = FindCuts(graph, RequestOn(axes), *FindMachinePreset("h100x8"));
  EXPECT_TRUE(points.ok()) << points.status();
  std::vector<std::string> chosen;
  for (const CutPoint& point : *points) {
    if (point.chosen) chosen.push_back(point.value);
  }
  return absl::StrJoin(chosen, " ");
}

// What samples are in, merged rows too, is shared by dp; a parameter that crosses is not, and
// neither is what was summed over samples.
TEST(CutLayersTest, BytesAreThoseOfARank) {
  const auto graph = [](int64_t batch) {
    return ReadGraph(absl::StrCat(R"(graph @g logical layers=0 (
      param %w: f32[embed=8,8],
      data %x: f32[batch=)",
                                  batch, R"(,seq=4,embed=8],
      data %weights: f32[batch=)",
                                  batch, R"(]
    ) {
      %a = matmul(%x, %w) {spec="b s e, e f -> b s f"}
      %rows = reshape(%a) {sizes=[)",
                                  4 * batch, R"(,8]}
      %b = matmul(%rows, %w) {spec="r e, e f -> r f"}
      %sums = reduce_sum(%b) {dims=[0]}
      %c = mul(%sums, %sums)
      %loss = reduce_sum(%c) {dims=[0]}
      %count = total(%weights)
      loss "loss" = %loss
      report "count" = %count
    })"));
  };
  const std::string of_a_rank =
      "a=512 rows=512 b=256 sums=32 c=32 loss=0";  // of `a` and `rows` the weight of 256 is apart
  EXPECT_EQ(BytesText(graph(2), {{"pp", 2}}), of_a_rank);
  EXPECT_EQ(BytesText(graph(16), {{"dp", 8}, {"pp", 2}}), of_a_rank);
}

// Behind the first of four blocks 32 KiB cross, in the middle 4 MiB: over NVLink even halves are
// better, over the network what crosses outweighs them.
TEST(CutLayersTest, WhatCrossesTakesTheTierOfItsRanks) {
  const Graph graph = ReadGraph(R"(graph @g logical layers=0 (
    param %w0: f32[1024,1024],
    param %w1: f32[1024,8],
    param %w2: f32[8,1024],
    param %w3: f32[1024,1024],
    param %w4: f32[1024,1024],
    param %w5: f32[1024,1024],
    data %x: f32[batch=1024,1024]
  ) {
    %h0 = matmul(%x, %w0) {spec="b k, k n -> b n"}
    %narrow = matmul(%h0, %w1) {spec="b k, k n -> b n"}
    %wide = matmul(%narrow, %w2) {spec="b k, k n -> b n"}
    %h1 = matmul(%wide, %w3) {spec="b k, k n -> b n"}
    %h2 = matmul(%h1, %w4) {spec="b k, k n -> b n"}
    %h3 = matmul(%h2, %w5) {spec="b k, k n -> b n"}
    %loss = total(%h3)
    loss "loss" = %loss
    report "count" = %loss
  })");
  EXPECT_EQ(ChosenText(graph, {{"pp", 2}}), "h1");
  EXPECT_EQ(ChosenText(graph, {{"tp", 8}, {"pp", 2}}), "narrow");
}

// Names are not held against costs: what is named is cut.
TEST(CutLayersTest, NamedPlacesAreTaken) {
  const Graph graph = ReadGraph(R"(graph @g logical layers=0 (
    data %x: f32[batch=8,embed=8]
  ) {
    %a = gelu(%x)
    %b = gelu(%a)
    %c = gelu(%b)
    %loss = total(%c)
    loss "loss" = %loss
    report "count" = %loss
  })");
  CutRequest request = RequestOn({{"pp", 2}});
  request.behind = {"c"};
  const auto cut = CutIntoLayers(graph, request, *FindMachinePreset("h100x8"));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->num_layers(), 2);
  EXPECT_EQ(cut->nodes()[2].layer, 0);
  EXPECT_EQ(cut->nodes()[3].layer, 1);
  request.behind = {"x", "nothing"};
  const auto refused = CutIntoLayers(graph, request, *FindMachinePreset("h100x8"));
  const std::string message(refused.status().message());
  EXPECT_NE(message.find("names %x, a data input"), std::string::npos) << message;
  EXPECT_NE(message.find("names %nothing, which"), std::string::npos) << message;
  EXPECT_NE(message.find("names 2 places, and pp * vp = 2 stages"), std::string::npos) << message;
  EXPECT_NE(message.find("nearest legal: --cuts b (by cost)"), std::string::npos) << message;
}

}  // namespace
}  // namespace mgc
