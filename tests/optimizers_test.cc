// The optimizers against golden values of another implementation (tests/golden/make_optimizers.py):
// three steps of each, by reference evaluation of the differentiated graph.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/graph.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"
#include "passes/graph/assign_optimizers.h"
#include "passes/graph/differentiate.h"

namespace mgc {
namespace {

constexpr double kTolerance = 1e-9;
constexpr char kGolden[] = "tests/golden/optimizers.json";
constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
constexpr Phase kUpdate[] = {Phase::kUpdate};

// The gradients of the parameters are gw, gu and gb: products with unit matrices are read.
constexpr char kModel[] = R"(graph @g logical (
  param %w: f32[3,4] {init="normal", decay=1},
  param %u: f32[3,2,2] {init="normal", decay=1},
  param %b: f32[3] {init="zeros", decay=0},
  data %x: f32[3,3],
  data %y: f32[6,3,2],
  data %gw: f32[3,4],
  data %gu: f32[6,2],
  data %gb: f32[3]
) {
  %pw = matmul(%x, %w) {spec="a k, k n -> a n"}
  %lw = weighted_sum(%pw, %gw)
  %pu = matmul(%y, %u) {spec="a n d, n d h -> a h"}
  %lu = weighted_sum(%pu, %gu)
  %lb = weighted_sum(%b, %gb)
  %n = constant() {value=2.0}
  loss %lw weight 1.0
  loss "u" = %lu weight 1.0
  loss "b" = %lb weight 1.0
  report "count" = %n
}
)";

std::vector<double> Numbers(const JsonValue& array) {
  std::vector<double> numbers;
  for (const JsonValue& item : array.items) numbers.push_back(item.number);
  return numbers;
}

class OptimizerGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  using Evaluator = GraphEvaluator<DoubleModel>;

  void SetUp() override {
    const absl::StatusOr<std::string> text = ReadFile(kGolden);
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<JsonValue> golden = ParseJson(*text, kGolden);
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
  }

  static void Set(const Graph& graph, const std::string& name, const std::vector<double>& values,
                  Evaluator* evaluator) {
    const ValueId id = graph.FindValue(name);
    if (id == kNone) return;  // a scalar that this optimizer does not take
    std::vector<int64_t> sizes;
    for (const Dim& dim : graph.type(id).dims) sizes.push_back(dim.size);
    HostTensor<double> tensor = HostTensor<double>::Make(sizes, false);
    ASSERT_EQ(tensor.real.size(), values.size()) << name;
    tensor.real = values;
    evaluator->Set(id, tensor);
  }

  static std::vector<double> Unit(size_t n) {
    std::vector<double> values(n * n);
    for (size_t i = 0; i < n; ++i) values[i * n + i] = 1;
    return values;
  }

  void Start(const Graph& graph, Evaluator* evaluator) const {
    for (const GraphInput& input : graph.inputs()) {
      if (input.kind == InputKind::kState) evaluator->SetZero(input.value);
    }
    for (const JsonMember& param : golden_.Find("start")->members) {
      Set(graph, param.key, Numbers(param.value), evaluator);
    }
    for (const JsonMember& number : golden_.Find("hyper")->members) {
      Set(graph, number.key, {number.value.number}, evaluator);
    }
    Set(graph, "lr", {golden_.Find("lr")->number}, evaluator);
    Set(graph, "decay", {golden_.Find("decay")->number}, evaluator);
    Set(graph, "max_norm", {golden_.Find("clip")->number}, evaluator);
    Set(graph, "x", Unit(3), evaluator);
    Set(graph, "y", Unit(6), evaluator);
  }

  void RunStep(const Graph& graph, size_t step, Evaluator* evaluator) const {
    for (const char* beta : {"1", "2"}) {
      const double value = golden_.Find("hyper")->Find(std::string("beta") + beta)->number;
      Set(graph, std::string("correction") + beta,
          {1 - std::pow(value, static_cast<double>(step + 1))}, evaluator);
    }
    for (const JsonMember& gradient : golden_.Find("gradients")->items[step].members) {
      Set(graph, "g" + gradient.key, Numbers(gradient.value), evaluator);
    }
    for (const GraphInput& input : graph.inputs()) {
      if (input.kind == InputKind::kAccumulator) evaluator->SetZero(input.value);
    }
    evaluator->Run(kMicroBatch, /*first_sample=*/0);
    evaluator->Assign(kMicroBatch);
    evaluator->Run(kUpdate, /*first_sample=*/0);
    evaluator->Assign(kUpdate);
  }

  JsonValue golden_;
};

TEST_P(OptimizerGoldenTest, TakesTheStepsOfAnother) {
  const absl::StatusOr<Graph> model = ParseGraph(kModel, "model");
  ASSERT_TRUE(model.ok()) << model.status();
  OptimizerConfig config;
  config.name = GetParam();
  config.groups = {{"u", 0.5, 2}};
  const absl::StatusOr<Graph> assigned = AssignOptimizers(*model, config);
  ASSERT_TRUE(assigned.ok()) << assigned.status();
  const absl::StatusOr<Graph> step = Differentiate(*assigned);
  ASSERT_TRUE(step.ok()) << step.status();
  Evaluator evaluator(*step, DoubleModel(), /*seed=*/1);
  Start(*step, &evaluator);
  const auto steps = static_cast<size_t>(golden_.Find("steps")->integer);
  for (size_t i = 0; i < steps; ++i) RunStep(*step, i, &evaluator);
  size_t compared = 0;
  for (const JsonMember& expected : golden_.Find("optimizers")->Find(GetParam())->members) {
    const ValueId id = step->FindValue(expected.key);
    ASSERT_NE(id, kNone) << expected.key;
    const std::vector<double> got = evaluator.Whole(id).real;
    const std::vector<double> values = Numbers(expected.value);
    ASSERT_EQ(got.size(), values.size()) << expected.key;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], values[i], kTolerance * std::max(std::abs(values[i]), 1e-2))
          << expected.key << "[" << i << "]";
    }
    ++compared;
  }
  // Nothing is kept that the other does not keep.
  const auto kept =
      std::count_if(step->inputs().begin(), step->inputs().end(),
                    [](const GraphInput& input) { return input.kind == InputKind::kState; });
  EXPECT_EQ(compared, 3 + static_cast<size_t>(kept));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerGoldenTest,
                         testing::Values("adamw", "adam", "sgd", "lion", "muon"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mgc
