// Every optimizer trains the same under every plan; muon, which acts on whole matrices, too.

#include "graph/ir/optimizers.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 5;

TrainCase With(TrainCase c, absl::string_view optimizer) {
  c.parallel.optimizer.name = std::string(optimizer);
  return c;
}

TrainCase InType(TrainCase c, DType type) {
  c.parallel.compute_type = type;
  return c;
}

std::string NameOfCase(const TrainCase& c) {
  return absl::StrCat(c.parallel.optimizer.name, "_", NameOf(c));
}

TrainResult Train(const TrainCase& c) {
  absl::StatusOr<TrainResult> result = TrainCaseFor(c, kSteps);
  EXPECT_TRUE(result.ok()) << NameOfCase(c) << ": " << result.status();
  return result.ok() ? *std::move(result) : TrainResult();
}

// The one rank that a case is compared with.
const TrainResult& OneRank(const TrainCase& c) {
  static auto* const known = new std::map<std::string, TrainResult>();
  TrainCase one = With(GptCase(1, 1, 1), c.parallel.optimizer.name);
  one.preset = c.preset;
  const auto [it, is_new] = known->try_emplace(NameOfCase(one));
  if (is_new) it->second = Train(one);
  return it->second;
}

std::vector<TrainCase> Cases() {
  std::vector<TrainCase> cases;
  for (const char* name : {"adam", "sgd", "lion"}) {
    cases.push_back(With(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))), name));
  }
  cases.push_back(With(WithSequenceParallel(GptCase(2, 1, 1)), "muon"));
  cases.push_back(With(GptCase(1, 2, 1), "muon"));
  cases.push_back(With(WithContextParallel(LlamaCase(1, 1, 1), 2), "muon"));
  for (const int64_t zero : {0, 1, 2, 3}) {
    cases.push_back(With(WithZero(LlamaCase(2, 1, 2), zero), "muon"));
  }
  cases.push_back(
      With(WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))), RecomputeKind::kFull),
           "muon"));
  return cases;
}

class OptimizersTest : public testing::TestWithParam<TrainCase> {};

// Lion's sign is not continuous: where rounding decides it, an element moves twice the rate apart.
TEST_P(OptimizersTest, EqualsOneRank) {
  const TrainCase& c = GetParam();
  const TrainResult& one = OneRank(c);
  const TrainResult many = Train(c);
  ASSERT_EQ(one.losses.size(), many.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i] / one.losses[i], 1, i == 0 ? 1e-6 : 1e-5) << "step " << i;
  }
  EXPECT_LT(one.losses.back(), one.losses[0]);
  for (const auto& [name, values] : one.parameters) {
    if (absl::StrContains(name, "attention.k.bias")) continue;  // its true gradient is zero
    const double bound = c.parallel.optimizer.name == "lion" ? 1e-2 : 1e-4;
    EXPECT_LT(RelativeL2(values, many.parameters.at(name)), bound) << name;
  }
  EXPECT_EQ(many.planned_peaks, many.measured_peaks);
}

INSTANTIATE_TEST_SUITE_P(Plans, OptimizersTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOfCase(info.param); });

// Cuts, schedules and how often backward computes change no bit; muon's matrices are whole anyhow.
TEST(OptimizersInPipelinesTest, ChangeNoBit) {
  for (const Optimizer& optimizer : Optimizers()) {
    const TrainResult one = Train(With(GptCase(1, 1, 1), optimizer.name));
    const TrainResult two =
        Train(With(WithRecompute(GptCase(1, 2, 1), RecomputeKind::kSelective), optimizer.name));
    EXPECT_EQ(one.losses, two.losses) << optimizer.name;
    EXPECT_EQ(one.parameters, two.parameters) << optimizer.name;
  }
}

// In narrow types gradients are rounded, masters and states are not.
TEST(OptimizersInNarrowTypesTest, TrainLikeF32) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    const TrainCase wide = With(GptCase(1, 1, 1), "muon");
    const TrainResult& one = OneRank(wide);
    const TrainResult narrow = Train(InType(With(WithZero(GptCase(2, 1, 2)), "muon"), type));
    ASSERT_EQ(narrow.losses.size(), one.losses.size());
    EXPECT_EQ(narrow.left_out, 0);
    for (size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(narrow.losses[i] / one.losses[i], 1, 2e-2) << NameOf(type) << ", step " << i;
    }
  }
}

// One state an element instead of two is what the plan's memory says, and a place less for each
// number that a step is not given.
TEST(OptimizersMemoryTest, OneStateIsHalfOfTwo) {
  const auto plan_of = [](const char* name) {
    absl::StatusOr<Plan> plan = CompileCase(With(GptCase(1, 1, 1), name));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : Plan();
  };
  const auto numbers = [](const Plan& plan) {
    return kSlotAlignment * static_cast<int64_t>(plan.classes[0].scalars.size());
  };
  const Plan two = plan_of("adamw");
  for (const char* name : {"sgd", "lion"}) {
    const Plan one = plan_of(name);
    const MemoryUse& use = one.classes[0].memory;
    EXPECT_EQ(2 * use.states, two.classes[0].memory.states) << name;
    EXPECT_EQ(two.classes[0].memory.peak - use.peak, use.states + numbers(two) - numbers(one))
        << name;
  }
  EXPECT_EQ(plan_of("adam").classes[0].memory.peak, two.classes[0].memory.peak);
  EXPECT_LT(plan_of("muon").classes[0].memory.states, two.classes[0].memory.states);
}

}  // namespace
}  // namespace mgc
