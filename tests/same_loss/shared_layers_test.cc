// Layers that share their parameters, over pipelines: each class adds the gradients of its layers,
// then one all-reduce joins exactly the classes that hold the parameter. Such plans are proved and
// train as one rank does, dropout on.

#include "tests/same_loss/shared_layers.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "graph/plan/instr_collective.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;

// Six layers of GPT-2: one, two, two and one on four ranks or chunks.
const std::map<std::string, TrainCase>& Plans() {
  static const auto* const kPlans = new std::map<std::string, TrainCase>{
      {"one", GptCase(1, 1, 1)},
      {"tp2_sp_full", WithRecompute(WithSequenceParallel(GptCase(2, 1, 1)), RecomputeKind::kFull)},
      {"pp2", GptCase(1, 2, 1)},
      {"pp4", GptCase(1, 4, 1)},
      {"pp2_v2", WithSchedule(GptCase(1, 2, 1), ScheduleKind::kInterleaved, 2)},
      {"pp4_dp2_zero1", WithZero(GptCase(1, 4, 2))},
      {"pp2_v2_tp2_sp_dp2_zero1", WithZero(WithSequenceParallel(WithSchedule(
                                      GptCase(2, 2, 2), ScheduleKind::kInterleaved, 2)))},
      {"pp4_tp2_sp_dp2_zero1", WithZero(WithSequenceParallel(GptCase(2, 4, 2)))},
  };
  return *kPlans;
}

TrainCase CaseOf(const std::string& sharing, const std::string& plan) {
  TrainCase c = Plans().at(plan);
  c.layers = 6;
  c.shared = sharing;
  return c;
}

const TrainResult& OneRank(const std::string& sharing) {
  static auto* const known = new std::map<std::string, TrainResult>();
  auto [it, fresh] = known->try_emplace(sharing);
  if (fresh) {
    absl::StatusOr<TrainResult> result = TrainCaseFor(CaseOf(sharing, "one"), kSteps);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) it->second = *std::move(result);
  }
  return it->second;
}

class SharedLayersTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(SharedLayersTest, IsProvedAndTrainsAsOneRank) {
  const auto& [sharing, plan_name] = GetParam();
  const TrainCase c = CaseOf(sharing, plan_name);
  const absl::StatusOr<Plan> plan = CompileCase(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const VerifyReport report = VerifyPlan(*plan);
  ASSERT_TRUE(report.findings.empty()) << report.findings.ToString();
  const TrainResult& one = OneRank(sharing);
  const absl::StatusOr<TrainResult> many = TrainPlan(*plan, c, kSteps);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.losses.size(), many->losses.size());
  EXPECT_NEAR(many->losses[0] / one.losses[0], 1, 1e-6);
  EXPECT_NEAR(many->grad_norms[0] / one.grad_norms[0], 1, 1e-6);
  for (int64_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one.losses[i], 1, 1e-5) << i;
  EXPECT_EQ(one.gradients.size(), many->gradients.size());
  for (const auto& [param, gradient] : one.gradients) {
    ASSERT_EQ(many->gradients.count(param), 1u) << param;
    const std::vector<float>& other = many->gradients.at(param);
    if (absl::EndsWith(param, "attention.k.bias")) {  // zero but for rounding
      EXPECT_LT(LargestDifference(gradient, other), 1e-6) << param;
    } else {
      EXPECT_LT(RelativeL2(gradient, other), 1e-5) << param;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, SharedLayersTest,
    testing::Combine(testing::Values("albert", "universal", "turns", "frozen"),
                     testing::Values("tp2_sp_full", "pp2", "pp4", "pp2_v2", "pp4_dp2_zero1",
                                     "pp2_v2_tp2_sp_dp2_zero1", "pp4_tp2_sp_dp2_zero1")),
    [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

// What is not trained has no gradient, and is written to files as it began.
TEST(SharedLayersTest, FrozenParametersStay) {
  const TrainResult& one = OneRank("frozen");
  const TrainCase c = CaseOf("frozen", "pp4_tp2_sp_dp2_zero1");
  const absl::StatusOr<TrainResult> many = TrainCaseFor(c, kSteps);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.parameters.size(), many->parameters.size());
  int frozen = 0;
  for (const auto& [param, value] : one.parameters) {
    const bool is_frozen = absl::StartsWith(param, "layers.0.attention.");
    EXPECT_EQ(many->gradients.count(param), is_frozen ? 0u : 1u) << param;
    if (!is_frozen) continue;
    ++frozen;
    EXPECT_EQ(value, many->parameters.at(param)) << param;
  }
  EXPECT_EQ(frozen, 8);
}

// The all-reduces of a step that sum copies, by the classes they join; counted once.
std::map<std::string, int> Joins(const std::string& sharing, const std::string& plan_name) {
  const absl::StatusOr<Plan> plan = CompileCase(CaseOf(sharing, plan_name));
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, int> joins;
  if (!plan.ok()) return joins;
  for (const PlanClass& rank_class : plan->classes) {
    for (const Call& call : rank_class.update) {
      const Segment& segment = plan->segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) {
        if (!JoinsClasses(instr)) continue;
        const InstrCollective made = CollectiveOf(plan->mesh, plan->stages, segment, instr);
        if (made.classes.front() == rank_class.coordinate) ++joins[made.group];
      }
    }
  }
  return joins;
}

// A block of GPT-2 has 12 parameters of norms and attention and 4 of its MLP; embedding and head
// share the word table.
TEST(SharedLayersTest, EverySumJoinsExactlyTheClassesThatHoldAUse) {
  using Groups = std::map<std::string, int>;
  EXPECT_EQ(Joins("albert", "pp4"), (Groups{{"pp:0,1,2,3", 16}, {"embedding", 1}}));
  EXPECT_EQ(Joins("universal", "pp4"), (Groups{{"pp:0,1,2,3", 14}, {"embedding", 1}}));
  EXPECT_EQ(Joins("turns", "pp4"),
            (Groups{{"pp:0,2", 12}, {"pp:1,3", 12}, {"pp:0,1,2,3", 4}, {"embedding", 1}}));
  EXPECT_EQ(Joins("albert", "pp2"), (Groups{{"embedding", 17}}));
  // Norms and attention of either kind are on one class.
  EXPECT_EQ(Joins("turns", "pp2_v2"), (Groups{{"embedding", 5}}));
}

}  // namespace
}  // namespace mgc
