#include "frontends/losses.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Dim> Dims() { return {{2, "batch"}, {3, "seq"}, {5, "vocab"}}; }

Tensor Logits(ModelBuilder& b) { return b.Param("logits", "batch seq vocab", NormalInit(1)); }

std::vector<std::string> OpsOf(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) ops.push_back(node.op->name);
  return ops;
}

TEST(LossesTest, CrossEntropyOverAllTargets) {
  ModelBuilder b("m", Dims());
  CrossEntropyLoss(b, Logits(b));
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpsOf(*graph), ElementsAre("reduce_max", "stop_gradient", "exp_sum", "log_shift",
                                         "pick", "sub", "weighted_sum", "total"));
}

// What is ignored has no weight, in the loss and in the count.
TEST(LossesTest, IgnoredAndSmoothedTargets) {
  ModelBuilder b("m", Dims());
  CrossEntropyOptions options;
  options.smoothing = 0.1;
  options.ignore = -1;
  CrossEntropyLoss(b, Logits(b), options);
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpsOf(*graph), ElementsAre("reduce_max", "stop_gradient", "exp_sum", "log_shift",
                                         "pick", "reduce_sum", "scale", "scale", "add", "sub",
                                         "counted", "weighted_sum", "total"));
  EXPECT_EQ(graph->FindValue("weights"), kNone);
}

TEST(LossesTest, TermsHaveNamesAndWeights) {
  ModelBuilder b("m", Dims());
  const Tensor x = Logits(b);
  const Tensor y = b.Data("labels", "batch seq vocab", DType::kF32);
  const Tensor weights = b.Weights();
  LossTerm(b, "squares", SumOverLast(b, SquaredError(b, x, y)), weights, 0.5);
  LossTerm(b, "labels", SumOverLast(b, BinaryCrossEntropy(b, x, y)), weights);
  ReportCount(b, weights);
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->outputs().size(), 3u);
  EXPECT_EQ(graph->outputs()[0].name, "squares");
  EXPECT_EQ(graph->outputs()[0].weight, 0.5);
  EXPECT_EQ(graph->outputs()[1].weight, 1.0);
}

TEST(LossesTest, MistakesAreNamed) {
  ModelBuilder b("m", Dims());
  const Tensor x = Logits(b);
  CrossEntropy(b, x, b.Targets(), 1.0);
  CrossEntropy(b, b.Op("total", {x}), b.Targets());
  b.Data("targets", "batch", DType::kI64);
  const absl::StatusOr<Graph> graph = std::move(b).Finish();
  ASSERT_FALSE(graph.ok());
  const std::vector<std::string> errors = absl::StrSplit(graph.status().message(), '\n');
  ASSERT_EQ(errors.size(), 3u) << graph.status();
  EXPECT_THAT(errors[0], HasSubstr("label smoothing 1 is not in [0, 1)"));
  EXPECT_THAT(errors[1], HasSubstr("logits need a dim of entries"));
  EXPECT_THAT(errors[2],
              HasSubstr("data input `targets` is i64[batch=2,seq=3], and i64[batch=2] here"));
}

}  // namespace
}  // namespace mgc
