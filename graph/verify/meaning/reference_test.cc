#include "graph/verify/meaning/reference.h"

#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint64_t kKey = 99;

Graph Parse(const char* text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, "test");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// loss = sum over b of weight_b (x_b . w), with x the rows of a table.
constexpr char kLookups[] = R"(
graph @rows logical layers=0 (
  data %tokens: i64[batch=3],
  data %weights: f32[batch=3],
  param %table: f32[vocab=5,embed=1] {decay=1, init="zeros"}
) {
  %rows: f32[batch=3,embed=1] = lookup(%table, %tokens) layer embedding
  %x: f32[batch=3] = reshape(%rows) {names="batch", sizes=[3]} layer embedding
  %loss: f64[] = weighted_sum(%x, %weights) layer 0
  %count: f64[] = total(%weights) layer 0
  loss "loss" = %loss weight 1.0
  report "count" = %count
}
)";

TEST(ReferenceTest, AStepByHand) {
  const Graph model = Parse(kLookups);
  const StepInputs inputs(model, kKey);
  const absl::StatusOr<StepReference> step = EvaluateStep(model, inputs, kKey, {2});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(step->gradients_hold);
  const ResidueModel m(kKey);
  const ResidueTensor table = inputs.Real("table", model.type(model.FindValue("table")));
  ResiduePair loss;
  ResiduePair tokens;
  std::vector<ResiduePair> gradient(5);
  for (int64_t batch = 0; batch < 2; ++batch) {
    const ResidueTensor& index = *inputs.Data("tokens", batch);
    const ResidueTensor& weights = *inputs.Data("weights", batch);
    for (size_t i = 0; i < 3; ++i) {
      const size_t row = static_cast<size_t>(index.index[i]);
      loss = m.Add(loss, m.Mul(weights.real[i], table.real[row]));
      tokens = m.Add(tokens, weights.real[i]);
      gradient[row] = m.Add(gradient[row], weights.real[i]);
    }
  }
  EXPECT_EQ(step->reports.at("loss"), m.Mul(loss, m.Inv(tokens)));
  EXPECT_EQ(step->reports.at("tokens"), tokens);
  EXPECT_EQ(step->reports.at("grad_factor"), m.Inv(tokens));
  for (size_t row = 0; row < 5; ++row) {
    EXPECT_EQ(step->params.at("table").gradient.real[row], gradient[row]);
  }
}

TEST(ReferenceTest, EvaluationLeavesDropoutOut) {
  const Graph model = Parse(R"(
graph @rows logical layers=0 (
  data %weights: f32[batch=3],
  param %w: f32[batch=3] {decay=1, init="zeros"}
) {
  %x: f32[batch=3] = dropout(%w) {key="d", p=0.5} layer embedding
  %loss: f64[] = weighted_sum(%x, %weights) layer 0
  %count: f64[] = total(%weights) layer 0
  loss "loss" = %loss weight 1.0
  report "count" = %count
}
)");
  const StepInputs inputs(model, kKey);
  const absl::StatusOr<StepReference> step = EvaluateStep(model, inputs, kKey, {1});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_NE(step->reports.at("loss"), step->eval_reports.at("loss"));
  EXPECT_EQ(step->eval_values[0].at("x").real, inputs.Real("w", model.type(0)).real);
}

TEST(ReferenceTest, AModelWithoutTokenCountIsRefused) {
  const Graph model = Parse(R"(
graph @rows logical layers=0 (
  param %w: f32[3] {decay=1, init="zeros"}
) {
  %loss: f64[] = total(%w) layer 0
  loss "loss" = %loss weight 1.0
}
)");
  const StepInputs inputs(model, kKey);
  EXPECT_FALSE(EvaluateStep(model, inputs, kKey, {1}).ok());
}

TEST(StepInputsTest, IndicesStayBelowWhatIsLookedUp) {
  const Graph model = Parse(kLookups);
  const StepInputs inputs(model, kKey);
  for (int64_t batch = 0; batch < 20; ++batch) {
    for (int64_t index : inputs.Data("tokens", batch)->index) {
      EXPECT_GE(index, 0);
      EXPECT_LT(index, 5);
    }
  }
  EXPECT_EQ(inputs.Data("table", 0), nullptr) << "a parameter is no data";
}

}  // namespace
}  // namespace mgc
