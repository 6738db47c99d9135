// Training is the same under every plan: ten steps, dropout on. In f32 all plans are near one rank;
// cuts, schedules and recomputation change no bit, in bf16 and f16 neither.

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/types/tensor_type.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 6;

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

TrainResult Train(const TrainCase& c) {
  absl::StatusOr<TrainResult> result = TrainCaseFor(c, kSteps);
  EXPECT_TRUE(result.ok()) << NameOf(c) << ": " << result.status();
  return result.ok() ? *std::move(result) : TrainResult();
}

void ExpectSameBits(const TrainResult& a, const TrainCase& c) {
  SCOPED_TRACE(NameOf(c));
  const TrainResult b = Train(c);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(b.planned_peaks, b.measured_peaks);
}

class SameBitsTest : public testing::TestWithParam<std::tuple<TrainCase, DType>> {};

// Cuts, schedules and recomputation change no bit.
TEST_P(SameBitsTest, PipelineScheduleAndRecompute) {
  TrainCase base = std::get<TrainCase>(GetParam());
  base.parallel.compute_type = std::get<DType>(GetParam());
  const TrainResult one = Train(base);
  TrainCase two = base;
  two.parallel.pp = 2;
  ExpectSameBits(one, two);
  ExpectSameBits(one, WithSchedule(two, ScheduleKind::kGpipe));
  ExpectSameBits(one, WithSchedule(two, ScheduleKind::kInterleaved, 2));
  ExpectSameBits(one, WithRecompute(two, RecomputeKind::kFull));
  ExpectSameBits(one, WithRecompute(base, RecomputeKind::kSelective));
  TrainCase uneven = WithRecompute(two, ParseRecomputation("full,none*2,selective").value());
  uneven.parallel.layout.layout = "Et*3|tL";
  ExpectSameBits(one, uneven);
  TrainCase four = base;
  four.parallel.pp = 4;
  ExpectSameBits(one, four);
}

INSTANTIATE_TEST_SUITE_P(
    Bases, SameBitsTest,
    testing::Combine(testing::Values(GptCase(1, 1, 1), LlamaCase(1, 1, 1),
                                     WithZero(WithSequenceParallel(GptCase(2, 1, 2))),
                                     WithZero(LlamaCase(1, 1, 2), 3),
                                     WithNarrowSums(GptCase(1, 1, 2)),
                                     WithNarrowSums(WithZero(LlamaCase(2, 1, 2)))),
                     testing::Values(DType::kF32, DType::kBF16, DType::kF16)),
    [](const auto& info) {
      return absl::StrCat(NameOf(std::get<TrainCase>(info.param)), "_",
                          NameOf(std::get<DType>(info.param)));
    });

// Rows of a product do not know of each other, in whatever pieces they are computed.
TEST(SplitProductsTest, ChangeNoBit) {
  const TrainCase cases[] = {
      GptCase(2, 2, 2), WithContextParallel(LlamaCase(2, 1, 1), 2),
      WithZero(WithSequenceParallel(LlamaCase(4, 1, 2)), 3),
      WithContextParallel(WithSequenceParallel(GptCase(2, 1, 1)), 2),
      WithRecompute(WithSequenceParallel(GptCase(2, 2, 1)), RecomputeKind::kFull)};
  for (TrainCase c : cases) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      c.parallel.compute_type = type;
      const TrainResult whole = Train(c);
      ExpectSameBits(whole, WithSplitProducts(c, 2));
      ExpectSameBits(whole, WithSplitProducts(c, 4));
    }
  }
}

// With one micro-batch sums over ranks have the same terms at every level. (Of a table that two
// layers read, each layer's part is summed by itself from level 2 on.)
TEST(ZeroLevelsTest, AreTheSameBitsWithOneMicroBatch) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    TrainCase c = LlamaCase(1, 1, 4);
    c.parallel.micro_batch_size = kSameLossBatch / 4;
    c.parallel.compute_type = type;
    const TrainResult zero = Train(c);
    const TrainResult one = Train(WithZero(c));
    EXPECT_EQ(zero.losses, one.losses);
    EXPECT_EQ(zero.gradients, one.gradients);
    ExpectSameBits(one, WithZero(c, 2));
    ExpectSameBits(one, WithZero(c, 3));
  }
}

// What is gathered in backward again is what was gathered in forward.
TEST(ZeroLevelsTest, TwoAndThreeAreTheSameBits) {
  for (const TrainCase& c : {GptCase(2, 2, 2), LlamaCase(1, 2, 4)}) {
    ExpectSameBits(Train(WithZero(c, 2)), WithZero(c, 3));
    TrainCase kept = WithZero(c, 3);
    kept.parallel.reshard_after_forward = false;
    ExpectSameBits(Train(WithZero(c, 2)), kept);
  }
}

TEST(SamePlanTest, IsTheSameTwiceOnAnyNumberOfWorkers) {
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
