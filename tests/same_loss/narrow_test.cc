// Training in bf16 and f16: every plan is as near to f32 as one rank in that type is. (That cuts,
// schedules and recomputation change no bit is in same_loss_test.)

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;
constexpr double kTimes = 1.5;  // as far from f32 as one rank in the type may another plan be

TrainCase In(DType type, TrainCase c) {
  c.parallel.compute_type = type;
  return c;
}

TrainResult Train(const TrainCase& c) {
  absl::StatusOr<TrainResult> result = TrainCaseFor(c, kSteps);
  EXPECT_TRUE(result.ok()) << NameOf(c) << ": " << result.status();
  return result.ok() ? *std::move(result) : TrainResult();
}

// Runs of a plan from several first values, of which the first step is looked at.
using Steps = std::vector<TrainResult>;

Steps FirstSteps(const TrainCase& c) {
  constexpr uint64_t kSeeds = 12;  // one loss may be near by chance
  Steps steps;
  const absl::StatusOr<Plan> plan = CompileCase(c);
  EXPECT_TRUE(plan.ok()) << plan.status();
  for (uint64_t seed = 1; plan.ok() && seed <= kSeeds; ++seed) {
    absl::StatusOr<TrainResult> step = TrainPlan(*plan, c, kSteps, /*workers=*/0, seed);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) continue;
    EXPECT_EQ(step->left_out, 0) << NameOf(c) << ", seed " << seed;
    steps.push_back(*std::move(step));
  }
  return steps;
}

// Sums of squared differences over all steps: of losses, and of gradients by tensor.
struct Squares {
  double loss = 0;
  std::map<std::string, double> gradients;
};

Squares SquaresOf(const Steps& exact, const Steps& found) {
  Squares squares;
  for (size_t s = 0; s < exact.size(); ++s) {
    squares.loss += std::pow(exact[s].losses[0] - found[s].losses[0], 2);
    for (const auto& [name, gradient] : exact[s].gradients) {
      const std::vector<float>& other = found[s].gradients.at(name);
      double& sum = squares.gradients[name];
      for (size_t i = 0; i < gradient.size(); ++i) {
        sum += std::pow(double{gradient[i]} - other[i], 2);
      }
    }
  }
  return squares;
}

// One rank in f32 and in a narrower type.
struct OneRank {
  Steps exact, narrow;
};

const OneRank& OneRankOf(const TrainCase& c, DType type) {
  static auto* const known = new std::map<std::string, OneRank>();
  TrainCase one = c;
  one.dp = 1;
  one.parallel = GptCase(1, 1, 1).parallel;
  one.parallel.global_batch_size = c.parallel.global_batch_size;
  const auto [it, is_new] =
      known->try_emplace(absl::StrCat(NameOf(one), one.parallel.global_batch_size, NameOf(type)));
  if (is_new) it->second = {FirstSteps(one), FirstSteps(In(type, one))};
  return it->second;
}

class DistanceTest : public testing::TestWithParam<std::tuple<DType, TrainCase>> {};

TEST_P(DistanceTest, IsThatOfOneRank) {
  const auto& [type, c] = GetParam();
  const OneRank& one = OneRankOf(c, type);
  const Steps many = FirstSteps(In(type, c));
  ASSERT_EQ(many.size(), one.exact.size());
  const Squares of_one = SquaresOf(one.exact, one.narrow);
  const Squares of_many = SquaresOf(one.exact, many);
  EXPECT_LE(std::sqrt(of_many.loss), kTimes * std::sqrt(of_one.loss));
  for (const auto& [name, squares] : of_many.gradients) {
    EXPECT_LE(std::sqrt(squares), kTimes * std::sqrt(of_one.gradients.at(name))) << name;
  }
  EXPECT_EQ(many[0].planned_peaks, many[0].measured_peaks);
}

// Of those that are compared in f32, the ones that cut something: 40 and more.
std::vector<TrainCase> CasesThatCut() {
  std::vector<TrainCase> cases;
  for (const auto& of : {SameLossCases(), ContextParallelCases()}) {
    for (const TrainCase& c : of) {
      if (c.parallel.tp * c.parallel.cp * c.dp > 1) cases.push_back(c);
    }
  }
  return cases;
}

// Of these, one or two of each kind.
std::vector<TrainCase> SomeThatCut() {
  return {GptCase(2, 1, 1),
          WithSequenceParallel(GptCase(2, 1, 1)),
          WithZero(GptCase(1, 1, 2)),
          WithZero(WithSequenceParallel(GptCase(2, 2, 2))),
          WithRecompute(WithSequenceParallel(GptCase(2, 1, 2)), RecomputeKind::kSelective),
          WithContextParallel(GptCase(1, 1, 2), 2),
          LlamaCase(4, 1, 1),
          LlamaCase(1, 1, 4),
          WithSchedule(WithSequenceParallel(LlamaCase(2, 2, 2)), ScheduleKind::kInterleaved, 2),
          WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2))), RecomputeKind::kFull)};
}

// Those whose gradients are summed over ranks in every way there is.
std::vector<TrainCase> CasesThatSumGradients() {
  return {GptCase(1, 1, 2),
          WithZero(GptCase(1, 1, 2)),
          WithZero(GptCase(1, 1, 2), 2),
          WithZero(GptCase(1, 1, 4), 3, 2),
          WithZero(WithSequenceParallel(GptCase(2, 2, 2))),
          WithContextParallel(GptCase(1, 1, 2), 2),
          LlamaCase(1, 1, 4),
          WithZero(WithSequenceParallel(LlamaCase(2, 1, 2)), 3)};
}

class NarrowSumsTest : public testing::TestWithParam<TrainCase> {};

// The losses of the first step do not know of the rounding, its gradients do.
TEST_P(NarrowSumsTest, RoundGradientsAndNothingElse) {
  const TrainCase& c = GetParam();
  const TrainResult wide = Train(c);
  const TrainResult narrow = Train(WithNarrowSums(c));
  EXPECT_EQ(wide.losses[0], narrow.losses[0]);
  for (const auto& [name, gradient] : wide.gradients) {
    const std::vector<float>& rounded = narrow.gradients.at(name);
    EXPECT_NE(gradient, rounded) << name;
    // Softmax cancels what is added to all keys: the sum over ranks is 0, its terms are not.
    const bool is_zero = absl::EndsWith(name, "attention.k.bias");
    if (!is_zero) {
      EXPECT_LT(RelativeL2(gradient, rounded), 0x1p-7) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowSumsTest, testing::ValuesIn(CasesThatSumGradients()),
                         [](const testing::TestParamInfo<TrainCase>& info) {
                           return NameOf(info.param);
                         });

std::string NameOfDistance(const testing::TestParamInfo<DistanceTest::ParamType>& info) {
  return NameOf(std::get<TrainCase>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Bf16, DistanceTest,
                         testing::Combine(testing::Values(DType::kBF16),
                                          testing::ValuesIn(SomeThatCut())),
                         NameOfDistance);
// narrow_campaign.
INSTANTIATE_TEST_SUITE_P(Every, DistanceTest,
                         testing::Combine(testing::Values(DType::kBF16),
                                          testing::ValuesIn(CasesThatCut())),
                         NameOfDistance);
INSTANTIATE_TEST_SUITE_P(F16, DistanceTest,
                         testing::Combine(testing::Values(DType::kF16),
                                          testing::ValuesIn(SomeThatCut())),
                         NameOfDistance);

}  // namespace
}  // namespace mgc
