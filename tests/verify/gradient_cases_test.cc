// Silent gradient bugs of hand-placed collectives (Megatron-LM issue #7452 and its relatives), each
// told as a logical graph. Our passes derive shardings that give the numbers of one device; the
// mistakes themselves are `<case>_wrong.mgc`, which the check of shardings refuses.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/ir/check.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"
#include "passes/config/parallel_config.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/simplify.h"
#include "tests/filetest/filetest.h"

namespace mgc {
namespace {

using Values = std::map<std::string, std::vector<double>>;

struct GradientCase {
  std::string name;  // of the file
  int64_t tp = 1;
  int64_t dp = 1;
  bool sequence_parallel = false;
  Values inputs;    // parameters and data; indices are whole numbers
  Values expected;  // reports and mean gradients, as published or by hand
  double tolerance = 1e-12;
};

template <class T>
T Must(absl::StatusOr<T> result) {
  MGC_CHECK(result.ok()) << result.status().ToString();
  return *std::move(result);
}

ParallelConfig ConfigOf(const GradientCase& c) {
  ParallelConfig config;
  config.tp = c.tp;
  config.world_size = c.tp * c.dp;
  config.sequence_parallel = c.sequence_parallel;
  return config;
}

Graph LocalOf(const Graph& logical, const ParallelConfig& config) {
  const Graph training = Simplify(Must(Differentiate(Simplify(logical))));
  const MeshStrategy bound = Must(BindStrategy(DefaultStrategy(), config, {{"kv_heads", 1}}));
  return Partition(Must(Shard(training, bound.mesh, bound.strategy)).graph);
}

HostTensor<double> TensorOf(const TensorType& type, const std::vector<double>& numbers) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.size);
  HostTensor<double> tensor = HostTensor<double>::Make(shape, type.dtype == DType::kI64);
  MGC_CHECK(tensor.size() == static_cast<int64_t>(numbers.size())) << type.ToString();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (tensor.is_index) {
      tensor.index[i] = static_cast<int64_t>(numbers[i]);
    } else {
      tensor.real[i] = numbers[i];
    }
  }
  return tensor;
}

// One step of one micro-batch on all ranks: what it reports, and mean gradients.
Values RunStep(const Graph& local, const Values& inputs) {
  GraphEvaluator<DoubleModel> eval(local, DoubleModel(), 1);
  for (const GraphInput& input : local.inputs()) {
    const Value& value = local.value(input.value);
    const auto given = inputs.find(value.name);
    if (given != inputs.end()) {
      eval.Set(input.value, TensorOf(value.type, given->second));
    } else if (input.kind == InputKind::kScalar) {
      eval.Set(input.value, TensorOf(value.type, {0.5}));
    } else {
      eval.SetZero(input.value);
    }
  }
  const Phase micro_batch[] = {Phase::kForward, Phase::kBackward};
  const Phase update[] = {Phase::kUpdate};
  eval.Run(micro_batch, 0);
  eval.Assign(micro_batch);
  eval.Run(update, 0);
  Values values;
  for (const GraphOutput& output : local.outputs()) {
    if (output.kind == OutputKind::kReport) values[output.name] = eval.Whole(output.value).real;
  }
  const double factor = values.at(kGradFactorReport)[0];
  for (const auto& [param, sum] : GradientsOf(local)) {
    std::vector<double>& mean = values[GradName(local.value(param).name)];
    mean = eval.Whole(sum).real;
    for (double& element : mean) element *= factor;
  }
  return values;
}

void ExpectValues(const Values& values, const GradientCase& c) {
  for (const auto& [name, expected] : c.expected) {
    ASSERT_EQ(values.count(name), 1u) << name;
    const std::vector<double>& found = values.at(name);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], c.tolerance) << name << " " << i;
    }
  }
}

std::vector<GradientCase> Cases() {
  const std::vector<double> logits = {0, 1, 2, 3};
  const std::vector<double> one = {1};
  return {
      // 0.4401897 + 0.1 * 4 / 3 * (3 - 1.5); with a half of the words 0.9402 and 0.5402.
      {"label_smoothing",
       2,
       1,
       false,
       {{"gain", one}, {"w", logits}, {"x", one}, {"targets", {3}}, {"weights", one}},
       {{"loss", {0.4401896985611953 + 0.2}}}},
      // Published: 0.4401897; with logits gathered and labels local, 1.1333369.
      {"gathered_logits",
       2,
       1,
       false,
       {{"w", logits}, {"x", one}, {"targets", {3}}, {"weights", one}},
       {{"loss", {0.4401897}}},
       5e-8},
      // Published: 4; with local counts 14/3, as 6/1 and 10/3 give.
      {"local_counts",
       1,
       2,
       false,
       {{"gain", one}, {"w", one}, {"x", {6, 7, 8, 2, 3, 5}}, {"weights", {1, 0, 0, 1, 1, 1}}},
       {{"loss", {4}}, {"tokens", {4}}, {"w/grad", {4}}}},
      // 3, 4 and 12; pieces as the whole: 12.37 or 12.65, copies added up: 17.69.
      {"gradient_norm",
       2,
       1,
       false,
       {{"sink", {1, 1}}, {"scale", one}, {"c", {3, 4}}, {"d", {12}}, {"weights", one}},
       {{"grad_norm", {13}}}},
      // Doubled: 6 and 4.
      {"router_gradient",
       2,
       1,
       true,
       {{"router", {1, 1}}, {"x", {1, 2}}, {"share", {1, 0, 1, 1}}, {"weights", {1, 0}}},
       {{"router/grad", {3, 2}}}},
      // Published: ranks have 0.1200, 0.0400 and 0.0197, -0.0077; the sum is
      {"head_norm",
       2,
       1,
       false,
       {{"norm", {1, 1}},
        {"x", {1, 1, 1, 1}},
        {"g", {0.12, 0.04, 0.0197, -0.0077}},
        {"weights", one}},
       {{"norm/grad", {0.1397, 0.0323}}},
       1e-11},
      {"sequence_norm",
       2,
       1,
       true,
       {{"norm", {1, 1}},
        {"x", {1, 1, 1, 1}},
        {"g", {0.12, 0.04, 0.0197, -0.0077}},
        {"weights", {1, 0}}},
       {{"norm/grad", {0.1397, 0.0323}}},
       1e-11},
  };
}

// Whether ranks have terms of values, not only copies and pieces.
bool LeavesSums(const Graph& local) {
  return std::any_of(local.nodes().begin(), local.nodes().end(), [&](const Node& node) {
    return node.phase != Phase::kUpdate && !node.outputs.empty() &&
           !local.sharding(node.outputs[0]).sum.empty();
  });
}

class GradientCaseTest : public testing::TestWithParam<GradientCase> {
 protected:
  static std::string PathOf(absl::string_view ending) {
    return absl::StrCat("tests/verify/cases/", GetParam().name, ending);
  }
  static Graph Logical() {
    return Must(ParseGraph(Must(ReadFile(PathOf(".mgc"))), PathOf(".mgc")));
  }
};

TEST_P(GradientCaseTest, TheMistakeIsRefused) {
  const std::string path = PathOf("_wrong.mgc");
  EXPECT_EQ(FileTest(Must(ReadFile(path)), path, nullptr).Run(), "");
}

TEST_P(GradientCaseTest, OneDeviceGivesTheNumbers) {
  const Graph local = LocalOf(Logical(), ParallelConfig());
  ExpectValues(RunStep(local, GetParam().inputs), GetParam());
}

TEST_P(GradientCaseTest, DerivedLayoutsGiveThemToo) {
  const Graph local = LocalOf(Logical(), ConfigOf(GetParam()));
  EXPECT_TRUE(LeavesSums(local)) << "the sharding cuts nothing that matters";
  EXPECT_TRUE(CheckGraph(local).ok()) << CheckGraph(local);
  ExpectValues(RunStep(local, GetParam().inputs), GetParam());
}

std::string CaseName(const testing::TestParamInfo<GradientCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Cases, GradientCaseTest, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace mgc
