#include "tools/views/counted.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Graph ModelThatCounts(const std::string& weights, const std::string& count) {
  const absl::StatusOr<Graph> model =
      ParseGraph(absl::StrReplaceAll(R"(graph @g logical (
  data %tokens: i64[batch=2,seq=4],
  data %weights: WEIGHTS
) {
  %half = constant() {value=0.5}
  %count = COUNT
  report "count" = %count
})",
                                     {{"WEIGHTS", weights}, {"COUNT", count}}),
                 "model");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : Graph();
}

TEST(CountedTest, SaysWhatTheModelCounts) {
  const Graph tokens = ModelThatCounts("f32[batch=2,seq=4]", "total(%weights)");
  EXPECT_EQ(CountedText(tokens), "tokens: %count = total(%weights f32[batch=2,seq=4])");
  const Graph samples = ModelThatCounts("f32[batch=2]", "total(%weights)");
  EXPECT_EQ(CountedText(samples), "samples: %count = total(%weights f32[batch=2])");
  const Graph pixels = ModelThatCounts("f32[batch=2,row=3,column=3]", "total(%weights)");
  EXPECT_EQ(CountedText(pixels), "counts: %count = total(%weights f32[batch=2,row=3,column=3])");
  const Graph classes = ModelThatCounts("f32[batch=2,class=3]", "total(%weights)");
  EXPECT_EQ(CountedUnit(classes), "counts");
}

// A sum of products is of neither factor.
TEST(CountedTest, OnlyTakesSumsForWhatTheySum) {
  const Graph masked = ModelThatCounts("f32[batch=2,seq=4]", "weighted_sum(%weights, %weights)");
  EXPECT_EQ(CountedUnit(masked), "counts");
  EXPECT_EQ(CountedUnit(Graph()), "counts");
}

}  // namespace
}  // namespace mgc
