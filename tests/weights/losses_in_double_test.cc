// Models that transformers has written, read into the graphs of their families and evaluated in
// float64: three steps have the losses that torch has in float64 (make_models.py).

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "frontends/weights/weight_map.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"
#include "runtime/data/sample_tensor.h"
#include "runtime/weights/model_files.h"
#include "runtime/weights/strided.h"

namespace mgc {
namespace {

using Evaluator = GraphEvaluator<DoubleModel>;
using Values = HostTensor<double>;

constexpr int64_t kSamples = 2;  // of a step
constexpr int64_t kTokens = 8;   // of a sample
constexpr double kRate = 0.1;
constexpr uint64_t kSeed = 0;  // of dropout, which there is none of

absl::StatusOr<std::map<std::string, Values>> ReadParameters(const std::string& dir,
                                                             const ModelConfig& config) {
  MGC_ASSIGN_OR_RETURN(WeightMap map, WeightMapOf(config));
  MGC_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(dir, std::move(map)));
  std::map<std::string, Values> parameters;
  for (const PlacedPart& part : files.parts()) {
    const std::vector<int64_t>& shape = part.part->shape;
    std::vector<float> values(static_cast<size_t>(NumElements(shape)));
    StridedReader reader(part, {{0, NumElements(shape)}});
    MGC_RETURN_IF_ERROR(reader.Read(0, absl::MakeSpan(values)));
    Values& made =
        parameters.emplace(part.part->parameter, Values::Make(shape, false)).first->second;
    made.real.assign(values.begin(), values.end());
  }
  return parameters;
}

// Samples of a step from a file of all.
Values BatchOf(const SampleTensor& all, int64_t step) {
  std::vector<int64_t> shape = all.shape;
  shape[0] = kSamples;
  const auto count = static_cast<size_t>(NumElements(shape));
  const auto begin = static_cast<std::ptrdiff_t>(count) * step;
  Values batch = Values::Make(shape, all.dtype() == DType::kI64);
  const auto take = [&](const auto& from, auto* to) {
    std::copy_n(from.begin() + begin, count, to->begin());
  };
  if (batch.is_index) {
    take(std::get<std::vector<int64_t>>(all.values), &batch.index);
  } else {
    take(std::get<std::vector<float>>(all.values), &batch.real);
  }
  return batch;
}

double ReportOf(const Graph& graph, const Evaluator& evaluator, absl::string_view name) {
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kReport || output.name != name) continue;
    return evaluator.Whole(output.value).real[0];
  }
  return NAN;
}

// A step of SGD; its loss.
absl::StatusOr<double> TakeStep(const Graph& graph, const std::string& dir, int64_t step,
                                std::map<std::string, Values>* parameters) {
  Evaluator evaluator(graph, DoubleModel(), kSeed);
  for (const GraphInput& input : graph.inputs()) {
    const std::string& name = graph.value(input.value).name;
    evaluator.SetZero(input.value);
    if (input.kind == InputKind::kScalar) {  // what the step's own update takes, and nobody reads
      Values one = Values::Make({}, false);
      one.real[0] = 1;
      evaluator.Set(input.value, one);
    } else if (input.kind == InputKind::kParam) {
      const auto found = parameters->find(name);
      if (found == parameters->end()) return absl::NotFoundError(name);
      evaluator.Set(input.value, found->second);
    } else if (input.kind == InputKind::kData) {
      MGC_ASSIGN_OR_RETURN(const SampleTensor all,
                           ReadSampleTensor({absl::StrCat(dir, "/batch.safetensors"), name}));
      evaluator.Set(input.value, BatchOf(all, step));
    }
  }
  constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
  constexpr Phase kUpdate[] = {Phase::kUpdate};
  evaluator.Run(kMicroBatch, 0);
  evaluator.Assign(kMicroBatch);
  evaluator.Run(kUpdate, 0);
  const double factor = ReportOf(graph, evaluator, kGradFactorReport);
  for (const auto& [param, sum] : GradientsOf(graph)) {
    Values& values = parameters->at(graph.value(param).name);
    const Values gradient = evaluator.Whole(sum);
    for (size_t i = 0; i < values.real.size(); ++i) {
      values.real[i] -= kRate * factor * gradient.real[i];
    }
  }
  return ReportOf(graph, evaluator, kLossReport);
}

struct Family {
  const char* name;
  // Larger where it shows that transformers computes angles of rotary positions and norms of root
  // mean squares in float32, whatever the model's type.
  double tolerance = 1e-9;
};

class LossesInDoubleTest : public testing::TestWithParam<Family> {};

TEST_P(LossesInDoubleTest, AreThoseOfTorch) {
  const std::string dir = absl::StrCat("tests/weights/", GetParam().name);
  const absl::StatusOr<ModelConfig> config = LoadModelConfig(absl::StrCat(dir, "/config.json"));
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<Graph> model =
      BuildModel(*config, kSamples, std::min(kTokens, config->max_positions), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<Graph> graph = Differentiate(*model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto parameters = ReadParameters(dir, *config);
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(dir, "/losses.txt"));
  ASSERT_TRUE(text.ok()) << text.status();
  int64_t step = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    double expected = 0;
    ASSERT_TRUE(absl::SimpleAtod(line, &expected));
    const absl::StatusOr<double> loss = TakeStep(*graph, dir, step, &*parameters);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_NEAR(*loss / expected, 1, GetParam().tolerance) << "step " << step;
    ++step;
  }
  EXPECT_EQ(step, 3);
}

INSTANTIATE_TEST_SUITE_P(Families, LossesInDoubleTest,
                         testing::Values(Family{"gpt2"}, Family{"bert"}, Family{"vit"},
                                         Family{"llama"}, Family{"qwen2", 2e-8}, Family{"qwen3"},
                                         Family{"mistral"}, Family{"phi3"}, Family{"gpt_neox"},
                                         Family{"gemma", 2e-8}, Family{"gemma2", 2e-8}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mgc
