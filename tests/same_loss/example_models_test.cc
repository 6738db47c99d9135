// The models of examples/ under each kind of parallelism that they have: the plan is proved, and
// trains as one rank does.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "examples/mixer_model.h"
#include "examples/t5_model.h"
#include "graph/base/status.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;

// A model and a layout.
using Case = std::tuple<std::string, std::string>;

absl::StatusOr<Graph> ModelFor(const std::string& name, int64_t batch) {
  if (name == "mixer") return MixerModel({}, batch);
  return T5Model({}, batch, /*source=*/24, /*seq=*/16);
}

TrainCase LayoutOf(const std::string& name) {
  const std::map<std::string, TrainCase> layouts = {
      {"one", GptCase(1, 1, 1)},
      {"tp2", GptCase(2, 1, 1)},
      {"tp2_sp", WithSequenceParallel(GptCase(2, 1, 1))},
      {"dp2_zero1", WithZero(GptCase(1, 1, 2))},
      {"tp2_dp2_full", WithRecompute(WithZero(GptCase(2, 1, 2)), RecomputeKind::kFull)},
  };
  return layouts.at(name);
}

absl::StatusOr<Plan> CompileExample(const std::string& model_name, const TrainCase& layout) {
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       ModelFor(model_name, layout.parallel.micro_batch_size * layout.dp));
  CompileOptions options;
  options.parallel = layout.parallel;
  options.parallel.world_size = layout.parallel.tp * layout.dp;
  options.parallel.seq_length = 16;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  return Compile(model, ModelDims(), options);
}

absl::StatusOr<TrainResult> TrainExample(const std::string& model, const TrainCase& layout) {
  MGC_ASSIGN_OR_RETURN(const Plan plan, CompileExample(model, layout));
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_TRUE(report.findings.empty()) << report.findings.ToString();
  return TrainPlan(plan, layout, kSteps);
}

class ExampleModelsTest : public testing::TestWithParam<Case> {};

TEST_P(ExampleModelsTest, IsProvedAndTrainsAsOneRank) {
  const auto& [model, layout] = GetParam();
  const absl::StatusOr<TrainResult> one = TrainExample(model, LayoutOf("one"));
  ASSERT_TRUE(one.ok()) << one.status();
  const absl::StatusOr<TrainResult> many = TrainExample(model, LayoutOf(layout));
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_NEAR(many->grad_norms[0] / one->grad_norms[0], 1, 1e-6);
  for (size_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one->losses[i], 1, 1e-5) << i;
  ASSERT_EQ(one->gradients.size(), many->gradients.size());
  for (const auto& [name, gradient] : one->gradients) {
    // What is added to all channels of a patch changes nothing behind a norm.
    if (absl::EndsWith(name, "tokens.down.bias")) {
      EXPECT_LT(LargestDifference(gradient, many->gradients.at(name)), 1e-6) << name;
    } else {
      EXPECT_LT(RelativeL2(gradient, many->gradients.at(name)), 1e-5) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExampleModelsTest,
                         testing::Values(Case("t5", "tp2"), Case("t5", "tp2_sp"),
                                         Case("t5", "dp2_zero1"), Case("t5", "tp2_dp2_full"),
                                         Case("mixer", "tp2"), Case("mixer", "dp2_zero1"),
                                         Case("mixer", "tp2_dp2_full")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param));
                         });

}  // namespace
}  // namespace mgc
