// Training is the same under every plan: ten steps, dropout on, f32, against one rank.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 10;
constexpr int64_t kGlobalBatch = 16;

TrainCase Gpt(int64_t tp, int64_t pp, int64_t dp) {
  TrainCase c;
  c.preset = "gpt2-tiny";
  c.dp = dp;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.micro_batch_size = 2;
  c.parallel.global_batch_size = kGlobalBatch;
  return c;
}
TrainCase Llama(int64_t tp, int64_t pp, int64_t dp) {
  TrainCase c = Gpt(tp, pp, dp);
  c.preset = "llama-tiny";
  return c;
}
TrainCase Sp(TrainCase c) {
  c.parallel.sequence_parallel = true;
  return c;
}
TrainCase Zero(TrainCase c) {
  c.parallel.zero = 1;
  return c;
}
TrainCase With(TrainCase c, ScheduleKind schedule, int64_t vp = 0) {
  c.parallel.schedule = schedule;
  c.parallel.vp = vp;
  return c;
}
TrainCase Again(TrainCase c, RecomputeKind recompute) {
  c.parallel.recompute = recompute;
  return c;
}
TrainCase Vocab(TrainCase c, int64_t vocab, int64_t multiple = 1) {
  c.vocab = vocab;
  c.vocab_multiple = multiple;
  return c;
}
TrainCase Kv(TrainCase c, int64_t kv_heads) {
  c.kv_heads = kv_heads;
  return c;
}
TrainCase Layers(TrainCase c, int64_t layers) {
  c.layers = layers;
  return c;
}
TrainCase Layout(TrainCase c, const char* layout) {
  c.parallel.layout.layout = layout;
  return c;
}
TrainCase First(TrainCase c, int64_t layers) {
  c.parallel.layout.decoder_first_layers = layers;
  return c;
}
TrainCase Mbs(TrainCase c, int64_t mbs) {
  c.parallel.micro_batch_size = mbs;
  return c;
}

std::vector<TrainCase> Cases() {
  const ScheduleKind gpipe = ScheduleKind::kGpipe;
  const ScheduleKind interleaved = ScheduleKind::kInterleaved;
  const RecomputeKind full = RecomputeKind::kFull;
  const RecomputeKind selective = RecomputeKind::kSelective;
  return {
      Gpt(2, 1, 1),
      Gpt(4, 1, 1),
      Sp(Gpt(2, 1, 1)),
      Sp(Gpt(4, 1, 1)),
      Gpt(1, 1, 2),
      Gpt(1, 1, 8),
      Zero(Gpt(1, 1, 2)),
      Zero(Mbs(Gpt(1, 1, 4), 1)),
      Gpt(1, 2, 1),
      Gpt(1, 4, 1),
      With(Gpt(1, 2, 1), gpipe),
      With(Gpt(1, 4, 1), gpipe),
      With(Gpt(1, 2, 1), interleaved, 2),
      Again(Gpt(1, 1, 1), full),
      Again(Gpt(1, 1, 1), selective),
      Again(Gpt(1, 2, 1), full),
      Again(Sp(Gpt(2, 2, 1)), full),
      Again(Sp(Gpt(2, 1, 2)), selective),
      Gpt(2, 2, 2),
      Sp(Gpt(2, 2, 2)),
      Zero(Sp(Gpt(2, 2, 2))),
      Zero(Gpt(2, 2, 2)),
      Sp(Gpt(4, 2, 2)),
      Zero(Sp(With(Gpt(2, 2, 2), interleaved, 2))),
      Layout(Gpt(1, 2, 1), "Ettt|tL"),
      Layout(With(Gpt(1, 2, 1), interleaved), "E|tt|tt|L"),
      First(Gpt(1, 2, 1), 1),
      Layers(Gpt(1, 4, 1), 5),
      Vocab(Gpt(4, 1, 1), 257, 8),
      Vocab(Sp(Gpt(4, 1, 1)), 261),
      Mbs(Gpt(1, 2, 2), 1),
      Mbs(Gpt(1, 1, 1), 8),
      Llama(2, 1, 1),
      Llama(4, 1, 1),
      Sp(Llama(4, 1, 1)),
      Llama(8, 1, 1),
      Sp(Llama(8, 1, 1)),
      Kv(Sp(Llama(4, 1, 1)), 1),
      Kv(Llama(4, 1, 1), 2),
      Llama(1, 1, 4),
      Zero(Llama(1, 1, 3)),
      Zero(Sp(Llama(2, 2, 2))),
      Sp(Llama(2, 2, 2)),
      With(Llama(1, 2, 1), interleaved, 2),
      With(Sp(Llama(2, 2, 2)), interleaved, 2),
      Again(Zero(Sp(Llama(2, 2, 2))), full),
      Again(Llama(1, 1, 1), full),
      Zero(Sp(Llama(4, 2, 2))),
      Sp(Llama(8, 2, 1)),
      Layers(With(Llama(1, 2, 1), interleaved, 3), 7),
      Vocab(Sp(Llama(8, 1, 1)), 259),
  };
}

// The one-rank run a case is compared with: same model, same micro-batch over all ranks' samples.
const TrainResult& OneRank(const TrainCase& c) {
  static std::map<std::string, TrainResult>* const known = new std::map<std::string, TrainResult>();
  TrainCase one = Gpt(1, 1, 1);
  one.preset = c.preset;
  one.vocab = c.vocab;
  one.kv_heads = c.kv_heads;
  one.layers = c.layers;
  if (c.parallel.global_batch_size != kGlobalBatch) {
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
  TrainCase c = GetParam();
  // Data-parallel sizes that do not divide the usual batch take the next that they do.
  const int64_t group = c.dp * c.parallel.micro_batch_size;
  c.parallel.global_batch_size = (kGlobalBatch + group - 1) / group * group;
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

INSTANTIATE_TEST_SUITE_P(Plans, SameLossTest, testing::ValuesIn(Cases()),
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
  for (const TrainCase& base : {Gpt(1, 1, 1), Llama(1, 1, 1), Zero(Sp(Gpt(2, 1, 2)))}) {
    TrainCase two = base;
    two.parallel.pp = 2;
    ExpectSameBits(base, two);
    ExpectSameBits(base, With(two, ScheduleKind::kGpipe));
    ExpectSameBits(base, With(two, ScheduleKind::kInterleaved, 2));
    ExpectSameBits(base, Again(two, RecomputeKind::kFull));
    ExpectSameBits(base, Again(base, RecomputeKind::kSelective));
    TrainCase four = base;
    four.parallel.pp = 4;
    ExpectSameBits(base, four);
  }
}

TEST(SameBitsTest, SamePlanTwiceOnAnyNumberOfWorkers) {
  const TrainCase c = Zero(Sp(Llama(2, 2, 2)));
  absl::StatusOr<TrainResult> one = TrainCaseFor(c, kSteps, 1);
  absl::StatusOr<TrainResult> two = TrainCaseFor(c, kSteps, 2);
  absl::StatusOr<TrainResult> three = TrainCaseFor(c, kSteps, 3);
  ASSERT_TRUE(one.ok() && two.ok() && three.ok());
  EXPECT_EQ(one->losses, two->losses);
  EXPECT_EQ(one->parameters, two->parameters);
  EXPECT_EQ(one->parameters, three->parameters);
}

TEST(SameLossTest, Learns) {
  absl::StatusOr<TrainResult> run = TrainCaseFor(Gpt(1, 1, 1), 30);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(run->losses[0], std::log(257.0), 0.2);
  EXPECT_LT(run->losses[29], 0.75 * run->losses[0]);
}

}  // namespace
}  // namespace mgc
