// All model families against golden values of an independent implementation (tests/golden): loss,
// every gradient and the optimizer's steps, by reference evaluation of the differentiated graph.

#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "examples/mixer_model.h"
#include "examples/t5_model.h"
#include "frontends/models.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/graph.h"
#include "graph/ir/step_names.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"

namespace mgc {
namespace {

constexpr double kTolerance = 1e-9;  // relative; both sides compute in double
constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
constexpr Phase kUpdate[] = {Phase::kUpdate};

using Evaluator = GraphEvaluator<DoubleModel>;
using Values = HostTensor<double>;

std::vector<int64_t> Sizes(const TensorType& type) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : type.dims) sizes.push_back(dim.size);
  return sizes;
}

absl::StatusOr<Graph> BuildGolden(const Golden& golden) {
  if (golden.example == "t5") {
    return T5Model({2, 8, 2, 4, 12, 13, 8, 6}, golden.batch, /*source=*/5, /*seq=*/6);
  }
  if (golden.example == "mixer") return MixerModel({2, 6, 5, 8, 7, 12, 4}, golden.batch);
  return BuildModel(golden.config, golden.batch, golden.config.seq_length);
}

// A golden model ready to run on one device.
class Model {
 public:
  Model(const Golden& golden, const std::vector<double>& weights)
      : graph_(Build(golden)), evaluator_(graph_, DoubleModel(), /*seed=*/1) {
    for (const GraphInput& input : graph_.inputs()) {
      const std::string& name = graph_.value(input.value).name;
      if (input.kind == InputKind::kParam) SetReal(name, golden.parameters.at(name));
      if (input.kind == InputKind::kState) evaluator_.SetZero(input.value);
      if (input.kind == InputKind::kScalar) SetReal(name, {0.0});
      if (input.kind == InputKind::kData) SetData(name, golden, weights);
    }
  }

  const Graph& graph() const { return graph_; }

  void SetReal(absl::string_view name, const std::vector<double>& values) {
    Values tensor = Empty(name);
    ASSERT_EQ(tensor.real.size(), values.size()) << name;
    tensor.real = values;
    evaluator_.Set(Find(name), tensor);
  }

  // Forward and backward of the one micro-batch of a step.
  void RunMicroBatch() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kAccumulator) evaluator_.SetZero(input.value);
    }
    evaluator_.Run(kMicroBatch, /*first_sample=*/0);
    evaluator_.Assign(kMicroBatch);
  }

  void RunUpdate() {
    evaluator_.Run(kUpdate, /*first_sample=*/0);
    evaluator_.Assign(kUpdate);
  }

  std::vector<double> Read(absl::string_view name) const {
    return evaluator_.Whole(Find(name)).real;
  }

  double Report(absl::string_view name) const {
    for (const GraphOutput& output : graph_.outputs()) {
      if (output.kind == OutputKind::kReport && output.name == name) {
        return evaluator_.Whole(output.value).real[0];
      }
    }
    ADD_FAILURE() << "no report " << name;
    return 0;
  }

  // The gradient of a parameter summed over the step: the sum of its uses' accumulators.
  std::vector<double> Gradient(const std::string& parameter) const {
    std::vector<double> sum;
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kAccumulator || input.attrs.Text("of") != parameter) continue;
      const std::vector<double> values = evaluator_.Whole(input.value).real;
      if (sum.empty()) sum.assign(values.size(), 0);
      for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
    return sum;
  }

 private:
  static Graph Build(const Golden& golden) {
    absl::StatusOr<Graph> logical = BuildGolden(golden);
    EXPECT_TRUE(logical.ok()) << logical.status();
    if (!logical.ok()) return Graph();
    absl::StatusOr<Graph> training = Differentiate(*logical);
    EXPECT_TRUE(training.ok()) << training.status();
    return training.ok() ? *std::move(training) : Graph();
  }

  ValueId Find(absl::string_view name) const {
    const ValueId id = graph_.FindValue(name);
    EXPECT_NE(id, kNone) << name;
    return id;
  }

  Values Empty(absl::string_view name) const {
    const TensorType& type = graph_.type(Find(name));
    return Values::Make(Sizes(type), type.dtype == DType::kI64);
  }

  void SetData(const std::string& name, const Golden& golden, const std::vector<double>& weights) {
    const auto given = golden.inputs.find(name);
    if (given == golden.inputs.end()) {
      if (name == "weights") return SetReal(name, weights);
      return SetIndex(name, name == "tokens" ? golden.tokens : golden.targets);
    }
    const std::vector<double>& values = given->second;
    if (graph_.type(Find(name)).dtype != DType::kI64) return SetReal(name, values);
    SetIndex(name, std::vector<int64_t>(values.begin(), values.end()));
  }

  void SetIndex(absl::string_view name, const std::vector<int64_t>& values) {
    Values tensor = Empty(name);
    ASSERT_EQ(tensor.index.size(), values.size()) << name;
    tensor.index = values;
    evaluator_.Set(Find(name), tensor);
  }

  Graph graph_;
  Evaluator evaluator_;
};

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

// L2 norm of the difference, relative to that of `want`; the true gradient of a key's bias is zero,
// which leaves rounding noise on both sides, so nothing is taken as smaller than `floor`.
double Distance(const std::vector<double>& got, const std::vector<double>& want, double floor) {
  EXPECT_EQ(got.size(), want.size());
  std::vector<double> difference(got.size());
  for (size_t i = 0; i < got.size(); ++i) difference[i] = got[i] - want[i];
  return Norm(difference) / std::max(Norm(want), floor);
}

class GoldenModelTest : public testing::TestWithParam<absl::string_view> {
 protected:
  void SetUp() override {
    absl::StatusOr<Golden> golden = LoadGolden(GetParam());
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
  }

  void ExpectLossAndGradients(const GoldenLoss& want, const std::vector<double>& weights) {
    Model model(golden_, weights);
    model.RunMicroBatch();
    const double loss = model.Read("loss/sum")[0];
    EXPECT_NEAR(loss, want.loss, kTolerance * std::abs(want.loss));
    double largest = 0;
    for (const auto& [name, gradient] : want.gradients) largest = std::max(largest, Norm(gradient));
    for (const auto& [name, gradient] : want.gradients) {
      EXPECT_LE(Distance(model.Gradient(name), gradient, 1e-3 * largest), kTolerance) << name;
    }
  }

  Golden golden_;
};

TEST_P(GoldenModelTest, ParametersHaveTheGoldenShapes) {
  const Model model(golden_, golden_.weights);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const GraphInput& input : model.graph().inputs()) {
    if (input.kind != InputKind::kParam) continue;
    shapes[model.graph().value(input.value).name] = Sizes(model.graph().type(input.value));
  }
  EXPECT_EQ(shapes, golden_.shapes);
}

TEST_P(GoldenModelTest, LossAndGradients) {
  ExpectLossAndGradients(golden_.sum, std::vector<double>(golden_.weights.size(), 1.0));
}

TEST_P(GoldenModelTest, WeightedLossAndGradients) {
  if (!golden_.weighted) GTEST_SKIP() << "counts its targets";
  ExpectLossAndGradients(*golden_.weighted, golden_.weights);
}

// The files that hold optimizer steps.
class GoldenTrainingTest : public GoldenModelTest {};

TEST_P(GoldenTrainingTest, AdamWSteps) {
  ASSERT_TRUE(golden_.adamw.has_value());
  const GoldenTraining& training = *golden_.adamw;
  Model model(golden_, std::vector<double>(golden_.weights.size(), 1.0));
  model.SetReal("lr", {training.lr});
  model.SetReal("decay", {training.weight_decay});
  model.SetReal("beta1", {training.beta1});
  model.SetReal("beta2", {training.beta2});
  model.SetReal("eps", {training.eps});
  model.SetReal("max_norm", {training.clip_grad});
  for (size_t step = 0; step < training.losses.size(); ++step) {
    const double t = static_cast<double>(step + 1);
    model.SetReal("correction1", {1 - std::pow(training.beta1, t)});
    model.SetReal("correction2", {1 - std::pow(training.beta2, t)});
    model.RunMicroBatch();
    model.RunUpdate();
    EXPECT_NEAR(model.Report(kLossReport), training.losses[step],
                kTolerance * training.losses[step]);
    EXPECT_NEAR(model.Report(kGradNormReport), training.grad_norms[step],
                kTolerance * training.grad_norms[step]);
  }
  for (const auto& [name, values] : training.parameters) {
    // Adam turns the rounding noise of a key bias's gradient into steps of up to the rate.
    const bool noise = absl::EndsWith(name, "attention.k.bias");
    const double room = noise ? 2 * training.lr * static_cast<double>(training.losses.size()) : 0;
    const std::vector<double> got = model.Read(name);
    ASSERT_EQ(got.size(), values.size()) << name;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], values[i], kTolerance * std::max(std::abs(values[i]), 1e-2) + room)
          << name << "[" << i << "]";
    }
  }
}

std::string NameOfCase(const testing::TestParamInfo<absl::string_view>& info) {
  return std::string(info.param);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModelTest, testing::ValuesIn(kGoldenNames), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Examples, GoldenModelTest, testing::ValuesIn(kGoldenExamples), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Models, GoldenTrainingTest, testing::Values("gpt2", "llama_gqa"),
                         NameOfCase);

}  // namespace
}  // namespace mgc
