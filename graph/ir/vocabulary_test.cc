#include "graph/ir/vocabulary.h"

#include "absl/strings/string_view.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

int64_t VocabularyOfText(absl::string_view text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text, "test");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? VocabularyOf(*graph) : -1;
}

TEST(VocabularyTest, IsWhatDataIsLookedUpInWhateverItsName) {
  EXPECT_EQ(VocabularyOfText(R"(graph @g logical layers=1 (
  param %table: f32[words=31,embed=2] {init="ones"},
  param %places: f32[vocab=7,embed=2] {init="ones"},
  data %tokens: i64[batch=2,seq=3]
) {
  %at = iota() {size=3, name="seq"} layer embedding
  %x = lookup(%table, %tokens) layer embedding
  %p = lookup(%places, %at) layer embedding
})"),
            31);
}

TEST(VocabularyTest, IsTheSmallerOfTwo) {
  EXPECT_EQ(VocabularyOfText(R"(graph @g logical layers=1 (
  param %table: f32[31,2] {init="ones"},
  param %small: f32[9,2] {init="ones"},
  data %tokens: i64[batch=2,seq=3]
) {
  %x = lookup(%table, %tokens) layer embedding
  %y = lookup(%small, %tokens) layer embedding
})"),
            9);
}

constexpr absl::string_view kTwoInputs = R"(graph @g logical layers=1 (
  param %table: f32[31,2] {init="ones"},
  param %kinds: f32[3,2] {init="ones"},
  data %tokens: i64[batch=2,seq=3],
  data %segments: i64[batch=2,seq=3]
) {
  %x = lookup(%table, %tokens) layer embedding
  %y = lookup(%kinds, %segments) layer embedding
  %w = counted(%tokens) {ignore=-100} layer embedding
})";

TEST(VocabularyTest, IsOfTheTextWhereThereIsOne) {
  EXPECT_EQ(VocabularyOfText(kTwoInputs), 31);
  const Graph graph = ParseGraph(kTwoInputs, "test").value();
  EXPECT_EQ(VocabularyOf(graph, "segments"), 3);
}

TEST(VocabularyTest, AnIgnoredIndexIsOfItsInput) {
  const Graph graph = ParseGraph(kTwoInputs, "test").value();
  EXPECT_EQ(IgnoredIndexOf(graph, "tokens"), -100);
  EXPECT_EQ(IgnoredIndexOf(graph, "segments"), absl::nullopt);
  EXPECT_EQ(IgnoredIndexOf(graph, "none"), absl::nullopt);
}

TEST(VocabularyTest, IsNoneWhereDataIsNoIndex) {
  EXPECT_EQ(VocabularyOfText(R"(graph @g logical layers=1 (
  param %w: f32[vocab=5] {init="ones"},
  data %x: f32[batch=2,vocab=5]
) {
  %y = mul(%x, %w) layer embedding
})"),
            0);
}

}  // namespace
}  // namespace mgc
