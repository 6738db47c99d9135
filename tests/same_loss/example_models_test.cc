// The models of examples/ under each kind of parallelism that they have: the plan is proved, and
// trains as one rank does.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "examples/mixer_model.h"
#include "examples/t5_model.h"
#include "graph/base/status.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "graph/verify/meaning/check_model.h"
#include "graph/verify/shrink/small_plans.h"
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
      {"pp2", GptCase(1, 2, 1)},
      {"pp4", GptCase(1, 4, 1)},
      {"pp2_vp2", WithSchedule(GptCase(1, 2, 1), ScheduleKind::kInterleaved, 2)},
      {"cp2", WithContextParallel(GptCase(1, 1, 1), 2)},
      {"dp2_zero1", WithZero(GptCase(1, 1, 2))},
      {"all",
       WithRecompute(WithZero(WithSequenceParallel(GptCase(2, 4, 2))), RecomputeKind::kFull)},
      {"tp2_dp2_full", WithRecompute(WithZero(GptCase(2, 1, 2)), RecomputeKind::kFull)},
  };
  return layouts.at(name);
}

absl::StatusOr<Plan> CompileExample(const std::string& model_name, const TrainCase& layout) {
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       ModelFor(model_name, layout.parallel.micro_batch_size * layout.dp));
  CompileOptions options;
  options.parallel = layout.parallel;
  const ParallelConfig& parallel = layout.parallel;
  options.parallel.world_size = parallel.tp * parallel.cp * parallel.pp * layout.dp;
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

const TrainResult& OneRank(const std::string& model) {
  static std::map<std::string, TrainResult>* const known = new std::map<std::string, TrainResult>();
  auto [it, fresh] = known->try_emplace(model);
  if (fresh) {
    absl::StatusOr<TrainResult> result = TrainExample(model, LayoutOf("one"));
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) it->second = *std::move(result);
  }
  return it->second;
}

class ExampleModelsTest : public testing::TestWithParam<Case> {};

TEST_P(ExampleModelsTest, IsProvedAndTrainsAsOneRank) {
  const auto& [model, layout] = GetParam();
  const TrainResult& one = OneRank(model);
  const absl::StatusOr<TrainResult> many = TrainExample(model, LayoutOf(layout));
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.losses.size(), many->losses.size());
  if (absl::StartsWith(layout, "pp")) {
    EXPECT_EQ(one.losses, many->losses) << "a cut changes no bit";
  }
  EXPECT_NEAR(many->grad_norms[0] / one.grad_norms[0], 1, 1e-6);
  for (size_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one.losses[i], 1, 1e-5) << i;
  ASSERT_EQ(one.gradients.size(), many->gradients.size());
  for (const auto& [name, gradient] : one.gradients) {
    // What is added to all channels of a patch changes nothing behind a norm.
    if (absl::EndsWith(name, "tokens.down.bias")) {
      EXPECT_LT(LargestDifference(gradient, many->gradients.at(name)), 1e-6) << name;
    } else {
      EXPECT_LT(RelativeL2(gradient, many->gradients.at(name)), 1e-5) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExampleModelsTest,
                         testing::Values(Case("t5", "tp2"), Case("t5", "tp2_sp"), Case("t5", "pp2"),
                                         Case("t5", "pp4"), Case("t5", "pp2_vp2"),
                                         Case("t5", "cp2"), Case("t5", "dp2_zero1"),
                                         Case("t5", "tp2_dp2_full"), Case("t5", "all"),
                                         Case("mixer", "tp2"), Case("mixer", "pp2"),
                                         Case("mixer", "dp2_zero1"), Case("mixer", "tp2_dp2_full")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param));
                         });

// At small sizes no distance is one that `farthest` decides on, and few lie in the upper half of
// the buckets: what each attribute does is told apart all the same.
TEST(ExampleProofTest, RefusesOtherBuckets) {
  const absl::StatusOr<Plan> plan = CompileExample("t5", LayoutOf("tp2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const auto& [attr, value] : {std::make_pair("farthest", 127), std::make_pair("buckets", 28),
                                    std::make_pair("causal", 1), std::make_pair("causal", 0)}) {
    SCOPED_TRACE(testing::Message() << attr << "=" << value);
    Plan other = *plan;
    int changed = 0;
    for (Segment& segment : other.segments) {
      for (Instr& instr : segment.instrs) {
        if (instr.op == nullptr || instr.op->name != "relative_bucket") continue;
        changed += instr.attrs.Int(attr) != value ? 1 : 0;
        instr.attrs.Set(attr, int64_t{value});
      }
    }
    EXPECT_GE(changed, 1);
    EXPECT_FALSE(VerifyPlan(other).findings.empty());
  }
}

// Rows that are not there would be zero on both sides.
TEST(ExampleProofTest, TablesOfBucketsKeepTheirRows) {
  const absl::StatusOr<Plan> plan = CompileExample("t5", LayoutOf("tp2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<std::vector<Plan>> small = SmallPlans(*plan, WorkOfStep);
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_FALSE(small->empty());
  for (const Plan& made : *small) {
    for (const char* name : {"embedding.position", "layers.2.position"}) {
      const ValueId table = made.model.FindValue(name);
      ASSERT_NE(table, kNone) << name;
      EXPECT_EQ(made.model.type(table).dims[0].size, 32) << name;
    }
    const ValueId words = made.model.FindValue("embedding.word");
    EXPECT_LT(made.model.type(words).dims[0].size, 32);
  }
}

}  // namespace
}  // namespace mgc
