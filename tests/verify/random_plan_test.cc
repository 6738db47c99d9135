// No false alarm: plans of random legal configurations are all proved.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "tests/fuzz/dice.h"

namespace mgc {
namespace {

constexpr int kSeeds = 4;
constexpr int kSeedsOfCampaign = 24;
constexpr int kPlansPerSeed = 45;
constexpr int kMostTries = 400;  // of a seed: what the compiler refuses does not count
constexpr uint64_t kSeed = 20250707;

template <class T>
T OneOf(Dice* dice, std::vector<T> choices) {
  return *dice->Pick(&choices);
}

// A small model: odd sizes, few or many key heads, a vocabulary that nothing divides.
ModelConfig RandomModel(Dice* dice) {
  const char* preset = OneOf<const char*>(dice, {"gpt2-tiny", "llama-tiny"});
  absl::StatusOr<ModelConfig> config = LoadModelPreset(preset);
  MGC_CHECK(config.ok()) << config.status().ToString();
  config->layers = 1 + static_cast<int64_t>(dice->Below(9));
  config->heads = OneOf<int64_t>(dice, {2, 4, 6, 8, 12});
  config->head_dim = OneOf<int64_t>(dice, {4, 8, 16});
  config->hidden = config->heads * config->head_dim;
  config->ffn = config->hidden * static_cast<int64_t>(2 + dice->Below(3));
  config->vocab = OneOf<int64_t>(dice, {257, 258, 259, 261, 264, 288, 300});
  config->kv_heads = config->heads;
  if (config->family == ModelFamily::kLlama) {
    std::vector<int64_t> divisors;
    for (int64_t n = 1; n <= config->heads; ++n) {
      if (config->heads % n == 0) divisors.push_back(n);
    }
    config->kv_heads = *dice->Pick(&divisors);
  }
  config->tie_embeddings = dice->Flip();
  if (dice->Flip()) config->attention_dropout = 0.1;
  if (dice->Flip()) config->embedding_dropout = config->hidden_dropout = 0.0;
  return *std::move(config);
}

ParallelConfig RandomParallel(const ModelConfig& config, Dice* dice) {
  ParallelConfig parallel;
  parallel.tp = OneOf<int64_t>(dice, {1, 1, 2, 2, 3, 4, 6, 8});
  parallel.pp = OneOf<int64_t>(dice, {1, 1, 2, 2, 3, 4, 5});
  const int64_t dp = OneOf<int64_t>(dice, {1, 1, 2, 2, 3, 4});
  parallel.world_size = parallel.tp * parallel.pp * dp;
  parallel.order = OneOf<std::string>(
      dice, {kDefaultAxisOrder, kDefaultAxisOrder, "tp-cp-ep-pp-dp", "dp-cp-ep-tp-pp"});
  parallel.sequence_parallel = parallel.tp > 1 && dice->Flip();
  parallel.micro_batch_size = 1 + static_cast<int64_t>(dice->Below(3));
  const int64_t micro_batches = 1 + static_cast<int64_t>(dice->Below(12));
  parallel.global_batch_size = parallel.micro_batch_size * dp * micro_batches;
  parallel.seq_length = OneOf<int64_t>(dice, {8, 16, 24, 48});
  parallel.schedule = OneOf<ScheduleKind>(
      dice, {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved});
  if (parallel.schedule == ScheduleKind::kInterleaved) {
    parallel.vp = 1 + static_cast<int64_t>(dice->Below(3));
    if (dice->Flip()) parallel.group_size = parallel.pp;
  }
  parallel.recompute = OneOf<RecomputeKind>(
      dice, {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull});
  parallel.zero = static_cast<int64_t>(dice->Below(2));
  if (parallel.tp > 1 && dice->Flip()) parallel.split_products = OneOf<int64_t>(dice, {2, 3, 4});
  if (parallel.pp > 1 && dice->Below(4) == 0) {
    parallel.layout.decoder_first_layers = 1 + static_cast<int64_t>(dice->Below(2));
  } else if (parallel.pp > 1 && dice->Below(4) == 0) {
    parallel.layout.decoder_last_layers = 1 + static_cast<int64_t>(dice->Below(2));
  } else if (parallel.pp > 1 && dice->Below(4) == 0) {
    parallel.layout.account_for_embedding = parallel.layout.account_for_loss = true;
  } else if (parallel.pp == 2 && config.layers > 2 && dice->Below(3) == 0) {
    parallel.layout.layout = absl::StrCat("Et|", std::string(config.layers - 1, 't'), "L");
  }
  return parallel;
}

absl::StatusOr<Plan> RandomPlan(Dice* dice, std::string* text) {
  const ModelConfig config = RandomModel(dice);
  CompileOptions options;
  options.parallel = RandomParallel(config, dice);
  const ParallelConfig& p = options.parallel;
  ModelOptions model_options;
  model_options.vocab_multiple = OneOf<int64_t>(dice, {1, 1, 4, 128});
  const int64_t dp = p.world_size / p.tp / p.pp;
  *text = absl::StrCat(
      config.family == ModelFamily::kGpt2 ? "gpt2" : "llama", " layers ", config.layers, " heads ",
      config.heads, "/", config.kv_heads, " of ", config.head_dim, " vocab ", config.vocab, "%",
      model_options.vocab_multiple, config.tie_embeddings ? " tied" : "", " tp ", p.tp, " pp ",
      p.pp, " vp ", p.vp, " group ", p.group_size, " dp ", dp, p.sequence_parallel ? " sp" : "",
      " order ", p.order, " micro-batch ", p.micro_batch_size, " batch ", p.global_batch_size,
      " seq ", p.seq_length, " ", ToString(p.schedule), " ", ToString(p.recompute), " zero ",
      p.zero, " split ", p.split_products, " layout ", p.layout.layout.value_or("-"), " first ",
      p.layout.decoder_first_layers.value_or(0), " last ",
      p.layout.decoder_last_layers.value_or(0));
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("a100x8"));
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       BuildModel(config, p.micro_batch_size * dp, p.seq_length, model_options));
  return Compile(model, DimsOf(config), options);
}

class RandomPlanTest : public testing::TestWithParam<int> {};

TEST_P(RandomPlanTest, IsProved) {
  const uint64_t seed = kSeed + static_cast<uint64_t>(GetParam());
  absl::PrintF("seed %d\n", seed);
  Dice dice(seed);
  int proved = 0;
  int tries = 0;
  for (; tries < kMostTries && proved < kPlansPerSeed; ++tries) {
    std::string text;
    const absl::StatusOr<Plan> plan = RandomPlan(&dice, &text);
    if (!plan.ok()) {
      ASSERT_TRUE(absl::IsInvalidArgument(plan.status())) << text << ": " << plan.status();
      continue;
    }
    ASSERT_TRUE(CheckPlan(*plan).ok()) << text << ": " << CheckPlan(*plan);
    const VerifyReport report = VerifyPlan(*plan);
    EXPECT_EQ(report.findings.ToString(), "") << text;
    EXPECT_LT(report.miss_probability, 1e-6) << text;
    ++proved;
  }
  absl::PrintF("%d plans of %d configurations\n", proved, tries);
  EXPECT_EQ(proved, kPlansPerSeed);
}

INSTANTIATE_TEST_SUITE_P(Some, RandomPlanTest, testing::Range(0, kSeeds));
// random_plan_campaign.
INSTANTIATE_TEST_SUITE_P(Many, RandomPlanTest, testing::Range(0, kSeedsOfCampaign));

}  // namespace
}  // namespace mgc
