// Losses (frontends/losses.h) against those of PyTorch in float64: tests/golden/losses.json.

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frontends/losses.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/graph.h"
#include "graph/ir/step_names.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"

namespace mgc {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kEntries = 7;
constexpr double kTolerance = 1e-9;

struct LossCase {
  std::string name;
  // Adds the loss of x [batch, vocab].
  std::function<void(ModelBuilder&, Tensor x)> add;
};

Tensor Labels(ModelBuilder& b) { return b.Data("labels", "batch vocab", DType::kF32); }

void AddCrossEntropy(ModelBuilder& b, Tensor x, double smoothing) {
  const Tensor targets = b.Data("targets", "batch", DType::kI64);
  const Tensor weights = CountedTargets(b, targets, -100);
  LossTerm(b, kLossReport, CrossEntropy(b, x, targets, smoothing), weights);
  ReportCount(b, weights);
}

// A loss of every element, summed over each row.
void AddOfElements(ModelBuilder& b, Tensor losses) {
  const Tensor weights = b.Data("weights", "batch", DType::kF32);
  LossTerm(b, kLossReport, SumOverLast(b, losses), weights);
  ReportCount(b, weights);
}

std::vector<LossCase> Cases() {
  return {
      {"cross_entropy", [](ModelBuilder& b, Tensor x) { AddCrossEntropy(b, x, 0); }},
      {"smoothed", [](ModelBuilder& b, Tensor x) { AddCrossEntropy(b, x, 0.1); }},
      {"squared_error",
       [](ModelBuilder& b, Tensor x) { AddOfElements(b, SquaredError(b, x, Labels(b))); }},
      {"binary",
       [](ModelBuilder& b, Tensor x) { AddOfElements(b, BinaryCrossEntropy(b, x, Labels(b))); }},
  };
}

std::vector<double> Numbers(const JsonValue& file, absl::string_view key) {
  std::vector<double> numbers;
  for (const JsonValue& item : file.Find(key)->items) numbers.push_back(item.number);
  return numbers;
}

class GoldenLossesTest : public testing::TestWithParam<LossCase> {};

TEST_P(GoldenLossesTest, LossAndGradient) {
  const JsonValue file =
      ParseJson(ReadFile("tests/golden/losses.json").value(), "losses.json").value();
  ModelBuilder b("losses", {{kRows, "batch"}, {kEntries, "vocab"}});
  GetParam().add(b, b.Param("x", "batch vocab", NormalInit(1)));
  absl::StatusOr<Graph> logical = std::move(b).Finish();
  ASSERT_TRUE(logical.ok()) << logical.status();
  absl::StatusOr<Graph> graph = Differentiate(*logical);
  ASSERT_TRUE(graph.ok()) << graph.status();

  GraphEvaluator<DoubleModel> evaluator(*graph, DoubleModel(), /*seed=*/1);
  ValueId gradient = kNone;
  for (const GraphInput& input : graph->inputs()) {
    const std::string& name = graph->value(input.value).name;
    const TensorType& type = graph->type(input.value);
    if (input.kind == InputKind::kAccumulator) {
      evaluator.SetZero(input.value);
      if (input.attrs.Text("of") == "x") gradient = input.value;
    }
    if (input.kind != InputKind::kParam && input.kind != InputKind::kData) continue;
    std::vector<int64_t> sizes;
    for (const Dim& dim : type.dims) sizes.push_back(dim.size);
    auto tensor = HostTensor<double>::Make(sizes, type.dtype == DType::kI64, 1.0);
    const std::vector<double> values =
        name == "weights" ? std::vector<double>() : Numbers(file, name);
    if (tensor.is_index) {
      tensor.index.assign(values.begin(), values.end());
    } else if (name != "weights") {
      tensor.real = values;
    }
    evaluator.Set(input.value, tensor);
  }
  constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
  evaluator.Run(kMicroBatch, /*first_sample=*/0);
  evaluator.Assign(kMicroBatch);

  const JsonValue& want = *file.Find(GetParam().name);
  const double loss = want.Find("loss")->number;
  EXPECT_NEAR(evaluator.Whole(graph->FindValue("loss/sum")).real[0], loss,
              kTolerance * std::abs(loss));
  ASSERT_NE(gradient, kNone);
  const std::vector<double> got = evaluator.Whole(gradient).real;
  const std::vector<double> expected = Numbers(want, "gradient");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], kTolerance) << i;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLossesTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc
