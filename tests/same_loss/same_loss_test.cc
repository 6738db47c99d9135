// Training is the same under every plan: ten steps, dropout on, f32, against one rank.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 10;

// The one-rank run a case is compared with: same model, same micro-batch over all ranks' samples.
const TrainResult& OneRank(const TrainCase& c) {
  static std::map<std::string, TrainResult>* const known = new std::map<std::string, TrainResult>();
  TrainCase one = GptCase(1, 1, 1);
  one.preset = c.preset;
  one.vocab = c.vocab;
  one.kv_heads = c.kv_heads;
  one.layers = c.layers;
  if (c.parallel.global_batch_size != kSameLossBatch) {
    one.parallel.global_batch_size = c.parallel.global_batch_size;
  }
  auto [it, fresh] =
      known->try_emplace(NameOf(one) + std::to_string(one.parallel.global_batch_size));
  if (fresh) {
    absl::StatusOr<TrainResult> result = TrainCaseFor(one, kSteps);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) it->second = *std::move(result);
  }
  return it->second;
}

class SameLossTest : public testing::TestWithParam<TrainCase> {};

TEST_P(SameLossTest, EqualsOneRank) {
  const TrainCase& c = GetParam();
  const TrainResult& one = OneRank(c);
  absl::StatusOr<TrainResult> many = TrainCaseFor(c, kSteps);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.losses.size(), many->losses.size());
  EXPECT_NEAR(many->losses[0] / one.losses[0], 1, 1e-6);
  EXPECT_NEAR(many->grad_norms[0] / one.grad_norms[0], 1, 1e-6);
  for (int64_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one.losses[i], 1, 1e-5) << i;
  ASSERT_EQ(one.gradients.size(), many->gradients.size());
  for (const auto& [name, gradient] : one.gradients) {
    // The true gradient of a key bias is zero.
    if (name.find("attention.k.bias") != std::string::npos) {
      EXPECT_LT(LargestDifference(gradient, many->gradients[name]), 1e-6) << name;
      EXPECT_LT(LargestDifference(one.parameters.at(name), many->parameters[name]),
                2 * one.sum_of_rates)
          << name;
      continue;
    }
    EXPECT_LT(RelativeL2(gradient, many->gradients[name]), 1e-5) << name;
    EXPECT_LT(RelativeL2(one.parameters.at(name), many->parameters[name]), 1e-4) << name;
  }
  EXPECT_EQ(many->planned_peaks, many->measured_peaks);
}

INSTANTIATE_TEST_SUITE_P(Plans, SameLossTest, testing::ValuesIn(SameLossCases()),
                         [](const testing::TestParamInfo<TrainCase>& info) {
                           return NameOf(info.param);
                         });

INSTANTIATE_TEST_SUITE_P(ContextParallel, SameLossTest, testing::ValuesIn(ContextParallelCases()),
                         [](const testing::TestParamInfo<TrainCase>& info) {
                           return NameOf(info.param);
                         });

void ExpectSameBits(const TrainCase& a, const TrainCase& b) {
  absl::StatusOr<TrainResult> first = TrainCaseFor(a, kSteps);
  absl::StatusOr<TrainResult> second = TrainCaseFor(b, kSteps);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->losses, second->losses) << NameOf(a) << " and " << NameOf(b);
  EXPECT_EQ(first->grad_norms, second->grad_norms) << NameOf(a) << " and " << NameOf(b);
  EXPECT_EQ(first->gradients, second->gradients) << NameOf(a) << " and " << NameOf(b);
  EXPECT_EQ(first->parameters, second->parameters) << NameOf(a) << " and " << NameOf(b);
}

// Cuts, schedules and recomputation change no bit.
TEST(SameBitsTest, PipelineScheduleAndRecompute) {
  for (const TrainCase& base :
       {GptCase(1, 1, 1), LlamaCase(1, 1, 1), WithZero(WithSequenceParallel(GptCase(2, 1, 2)))}) {
    TrainCase two = base;
    two.parallel.pp = 2;
    ExpectSameBits(base, two);
    ExpectSameBits(base, WithSchedule(two, ScheduleKind::kGpipe));
    ExpectSameBits(base, WithSchedule(two, ScheduleKind::kInterleaved, 2));
    ExpectSameBits(base, WithRecompute(two, RecomputeKind::kFull));
    ExpectSameBits(base, WithRecompute(base, RecomputeKind::kSelective));
    TrainCase four = base;
    four.parallel.pp = 4;
    ExpectSameBits(base, four);
  }
}

TEST(SameBitsTest, SamePlanTwiceOnAnyNumberOfWorkers) {
  const TrainCase c = WithZero(WithSequenceParallel(LlamaCase(2, 2, 2)));
  absl::StatusOr<TrainResult> one = TrainCaseFor(c, kSteps, 1);
  absl::StatusOr<TrainResult> two = TrainCaseFor(c, kSteps, 2);
  absl::StatusOr<TrainResult> three = TrainCaseFor(c, kSteps, 3);
  ASSERT_TRUE(one.ok() && two.ok() && three.ok());
  EXPECT_EQ(one->losses, two->losses);
  EXPECT_EQ(one->parameters, two->parameters);
  EXPECT_EQ(one->parameters, three->parameters);
}

TEST(SameLossTest, Learns) {
  absl::StatusOr<TrainResult> run = TrainCaseFor(GptCase(1, 1, 1), 30);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(run->losses[0], std::log(257.0), 0.2);
  EXPECT_LT(run->losses[29], 0.75 * run->losses[0]);
}

}  // namespace
}  // namespace mgc
