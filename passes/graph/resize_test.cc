#include "passes/graph/resize.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/ir/assemble.h"
#include "graph/ir/check.h"
#include "gtest/gtest.h"
#include "passes/graph/dim_classes.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A model of one layer, with `body` between its stream %x and its output %z.
Graph ModelWith(const std::string& body, const std::string& params = "") {
  const std::string text = absl::StrReplaceAll(
      R"(graph @g logical layers=1 (
  param %word: f32[vocab=64,embed=16],PARAMS
  data %tokens: i64[batch=8,seq=12],
  data %weights: f32[batch=8,seq=12]
) {
  %x = lookup(%word, %tokens) layer embedding
BODY
  %rows = reduce_sum(%z) {dims=[2]} layer 1
  %loss = weighted_sum(%rows, %weights) layer 1
  %count = total(%weights) layer 1
  loss "loss" = %loss
  report "count" = %count
})",
      {{"PARAMS", params}, {"BODY", body}});
  return NameDims(ReadGraph(text));
}

std::string TypeOf(const Graph& graph, const char* value) {
  const ValueId id = graph.FindValue(value);
  return id == kNone ? "none" : graph.type(id).ToString();
}

std::vector<std::string> Texts(const Diagnostics& violations) {
  std::vector<std::string> texts;
  for (const Diagnostic& violation : violations) texts.push_back(ToString(violation));
  return texts;
}

TEST(ResizeTest, KnowsSamplesAndTokens) {
  const Graph model = ModelWith("  %z = gelu(%x) layer 0");
  EXPECT_EQ(SamplesOf(model).name, "batch");
  EXPECT_EQ(SamplesOf(model).size, 8);
  EXPECT_EQ(TokensOf(model).name, "seq");
  EXPECT_EQ(TokensOf(model).size, 12);
  const Graph unnamed = NameDims(ReadGraph(R"(graph @g logical (data %tokens: i64[4,6]) {
    %x = reshape(%tokens) {sizes=[24]}
  })"));
  EXPECT_EQ(SamplesOf(unnamed).name, "batch");
  EXPECT_EQ(TokensOf(unnamed).name, "tokens#1");
  EXPECT_EQ(TokensOf(unnamed).size, 6);
}

TEST(ResizeTest, ChangesEveryDimThatIsTheSame) {
  const Graph model = ModelWith(R"(  %r = reshape(%x) {sizes=[96,16], names="rows embed"} layer 0
  %a = gelu(%r) layer 0
  %y = reshape(%a) {sizes=[8,12,16], names="_ _ embed"} layer 0
  %z = add(%x, %y) layer 0)");
  const Resized resized = Resize(model, 6, 20);
  ASSERT_THAT(Texts(resized.violations), IsEmpty());
  ASSERT_TRUE(resized.graph.has_value());
  EXPECT_EQ(CheckGraph(*resized.graph), absl::OkStatus());
  EXPECT_EQ(TypeOf(*resized.graph, "tokens"), "i64[batch=6,seq=20]");
  EXPECT_EQ(TypeOf(*resized.graph, "weights"), "f32[batch=6,seq=20]");
  EXPECT_EQ(TypeOf(*resized.graph, "a"), "f32[rows=120,embed=16]");
  EXPECT_EQ(TypeOf(*resized.graph, "z"), "f32[batch=6,seq=20,embed=16]");
  EXPECT_EQ(TypeOf(*resized.graph, "word"), "f32[vocab=64,embed=16]");
}

// Positions are made and broadcast by attributes; what is written beside them is longer by one.
TEST(ResizeTest, FollowsPositionsAndConcatenations) {
  const Graph model = ModelWith(R"(  %p = iota() {size=12, name="seq"} layer 0
  %e = lookup(%pos, %p) layer 0
  %b = broadcast(%e) {dims=[0], sizes=[8], names="batch"} layer 0
  %y = add(%x, %b) layer 0
  %first = slice(%y) {dim=1, begin=0, end=1} layer 0
  %longer = concat(%first, %y) {dim=1} layer 0
  %g = gelu(%longer) layer 0
  %z = slice(%g) {dim=1, begin=0, end=12} layer 0)",
                                "\n  param %pos: f32[position=32,embed=16],");
  const Resized more = Resize(model, 2, 12);
  ASSERT_THAT(Texts(more.violations), IsEmpty());
  EXPECT_EQ(TypeOf(*more.graph, "b"), "f32[batch=2,seq=12,embed=16]");
  const Resized longer = Resize(model, 8, 24);
  // The last slice takes 12 of 13 tokens, whatever their number is then.
  EXPECT_THAT(Texts(longer.violations), ElementsAre(HasSubstr("cannot be 24")));
}

TEST(ResizeTest, NamesWhatBindsASize) {
  const auto refused = [](const Graph& model, int64_t samples, int64_t tokens) {
    const Resized resized = Resize(model, samples, tokens);
    EXPECT_FALSE(resized.graph.has_value());
    return Texts(resized.violations);
  };
  EXPECT_THAT(
      refused(ModelWith("  %z = add(%x, %pos) layer 0", "\n  param %pos: f32[seq=12,embed=16],"), 8,
              24),
      ElementsAre("%pos: `seq` is 12 in the graph and cannot be 24: this parameter is "
                  "f32[seq=12,embed=16] [T2]"));
  EXPECT_THAT(refused(ModelWith(R"(  %a = slice(%x) {dim=1, begin=0, end=1} layer 0
  %b = slice(%x) {dim=1, begin=1, end=12} layer 0
  %z = concat(%b, %a) {dim=1} layer 0)"),
                      8, 24),
              ElementsAre(HasSubstr("%b: `seq` is 12 in the graph and cannot be 24: this slice "
                                    "takes [1, 12), up to the end [T2]")));
  // Halves of the batch: which of both dims is to grow, nothing says.
  EXPECT_THAT(refused(ModelWith(R"(  %a = reshape(%x) {sizes=[2,4,12,16], names="_ _ _ embed"}
  %b = reduce_sum(%a) {dims=[0]}
  %c = broadcast(%b) {dims=[0], sizes=[2], names="_"}
  %z = reshape(%c) {sizes=[8,12,16], names="batch seq embed"} layer 0)"),
                      12, 12),
              testing::Contains(HasSubstr("%a: `batch` is 8 in the graph and cannot be 12: ")));
  EXPECT_THAT(refused(ModelWith(R"(  %p = iota() {size=12, name="seq"} layer 0
  %e = lookup(%pos, %p) layer 0
  %z = add(%x, %e) layer 0)",
                                "\n  param %pos: f32[position=16,embed=16],"),
                      8, 17),
              ElementsAre("%e: `seq` is 12 in the graph and cannot be 17: this lookup takes a row "
                          "for each from %pos, which has 16 [T2]"));
}

TEST(ResizeTest, RefusesValuesThatAreTooLarge) {
  const Graph model = ModelWith("  %z = gelu(%x) layer 0");
  for (int64_t samples : {kMaxElements / 16, kMaxElements, kMaxElements + 1, INT64_MAX}) {
    EXPECT_THAT(Texts(Resize(model, samples, 12).violations),
                ElementsAre(HasSubstr("more than 2^50 elements [T1]")));
  }
}

TEST(ResizeTest, NotesConstantsThatStateASize) {
  const Graph model = ModelWith(R"(  %mean = constant() {value=0.125} layer 0
  %half = constant() {value=0.5} layer 0
  %tokens.mean = constant() {value=0.010416667} layer 0
  %a = mul(%x, %mean) layer 0
  %b = mul(%a, %half) layer 0
  %z = mul(%b, %tokens.mean) layer 0)");
  EXPECT_THAT(Resize(model, 4, 12).notes,
              ElementsAre("%mean stays 0.125, 1 / 8, as it is for batch=8",
                          "%tokens.mean stays 0.0104167, 1 / 96, as it is for batch=8"));
  EXPECT_THAT(Resize(model, 8, 12).notes, IsEmpty());
}

TEST(ResizeTest, NotesAConstantOfAllLayersOnce) {
  const Graph model = ReadGraph(R"(graph @g logical layers=2 (data %x: f32[batch=8,embed=16]) {
  %layers.0.mean = constant() {value=0.125} layer 0
  %y = mul(%x, %layers.0.mean) layer 0
  %layers.1.mean = constant() {value=0.125} layer 1
  %z = mul(%y, %layers.1.mean) layer 1
  %l = total(%z) layer 1
  loss "loss" = %l
  report "count" = %l
})");
  EXPECT_THAT(Resize(model, 4, 1).notes,
              ElementsAre("%layers.*.mean stays 0.125, 1 / 8, as it is for batch=8"));
}

}  // namespace
}  // namespace mgc
