#include "passes/config/check_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

using Labels = std::vector<std::string>;

ModelDims TinyGpt() { return {4, 64, 4, 4, 0, 256, 257, 128}; }

ModelDims Llama405() { return {126, 16384, 128, 8, 0, 53248, 128256, 131072}; }

ParallelConfig EightRanks() {
  ParallelConfig config;
  config.world_size = 8;
  config.tp = 2;
  config.pp = 2;
  config.sequence_parallel = true;
  config.micro_batch_size = 2;
  config.global_batch_size = 16;
  config.seq_length = 128;
  return config;
}

Labels Rules(const ParallelConfig& config, const ModelDims& model = TinyGpt()) {
  Labels rules;
  for (const Diagnostic& violation : CheckConfig(config, model).violations) {
    rules.push_back(violation.label);
  }
  std::sort(rules.begin(), rules.end());
  return rules;
}

std::string HintOf(const ParallelConfig& config, const std::string& rule,
                   const ModelDims& model = TinyGpt()) {
  for (const Diagnostic& violation : CheckConfig(config, model).violations) {
    if (violation.label == rule) return violation.hint;
  }
  return "rule not broken";
}

TEST(CheckConfigTest, AcceptsAndDerives) {
  const CheckedConfig checked = CheckConfig(EightRanks(), TinyGpt());
  EXPECT_EQ(checked.violations.ToString(), "");
  EXPECT_EQ(checked.dp, 2);
  EXPECT_EQ(checked.vp, 1);
  EXPECT_EQ(checked.micro_batches, 4);
  EXPECT_EQ(checked.placement.stages.size(), 2u);
}

TEST(CheckConfigTest, AcceptsPublishedScales) {
  ParallelConfig config;
  config.world_size = 16384;
  config.tp = 8;
  config.pp = 16;
  config.vp = 8;
  config.schedule = ScheduleKind::kInterleaved;
  config.sequence_parallel = true;
  config.global_batch_size = 2048;
  config.seq_length = 8192;
  const CheckedConfig checked = CheckConfig(config, Llama405());
  EXPECT_EQ(checked.violations.ToString(), "");
  EXPECT_EQ(checked.dp, 128);
  EXPECT_EQ(checked.micro_batches, 16);
  EXPECT_EQ(checked.group_size, 16);
  EXPECT_EQ(checked.placement.stages.size(), 128u);
  config.tp = 16;  // twice the kv heads
  EXPECT_EQ(Rules(config, Llama405()), Labels{});
}

TEST(CheckConfigTest, SizesThatNoCombinationMakesLegal) {
  ParallelConfig config = EightRanks();
  config.seq_length = 0;
  EXPECT_EQ(Rules(config), (Labels{"M0"}));
  ModelDims negative = TinyGpt();
  negative.heads = -1;
  EXPECT_EQ(Rules(EightRanks(), negative), (Labels{"M0"}));
}

TEST(CheckConfigTest, SequencesOfContextParallelRanks) {
  ParallelConfig config = EightRanks();
  config.cp = 2;
  config.sequence_parallel = false;
  EXPECT_EQ(Rules(config), Labels{});
  config.seq_length = 127;
  EXPECT_EQ(Rules(config), (Labels{"M6"}));
  EXPECT_EQ(HintOf(config, "M6"), "sequence length 126, 128");
}

TEST(CheckConfigTest, ModelDims) {
  ParallelConfig config = EightRanks();
  config.world_size = 12;
  config.tp = 3;
  config.sequence_parallel = false;
  config.global_batch_size = 4;
  EXPECT_EQ(Rules(config), (Labels{"M1", "M2", "M4"}));
  EXPECT_EQ(HintOf(config, "M4"), "tp 2, 4");
  ModelDims model = TinyGpt();
  model.hidden = 66;
  EXPECT_EQ(Rules(EightRanks(), model), (Labels{"M3"}));
  EXPECT_EQ(HintOf(EightRanks(), "M3", model), "hidden size 64, 68");
  model.head_dim = 16;
  EXPECT_EQ(Rules(EightRanks(), model), Labels{});
  model = TinyGpt();
  model.kv_heads = 3;
  EXPECT_EQ(Rules(EightRanks(), model), (Labels{"M2", "M2"}));
  model.kv_heads = 1;
  EXPECT_EQ(Rules(EightRanks(), model), Labels{});
}

TEST(CheckConfigTest, Sequences) {
  ParallelConfig config = EightRanks();
  config.seq_length = 127;
  EXPECT_EQ(Rules(config), (Labels{"M7"}));
  EXPECT_EQ(HintOf(config, "M7"), "sequence length 126, 128");
  config.sequence_parallel = false;
  EXPECT_EQ(Rules(config), Labels{});
  config.seq_length = 129;
  EXPECT_EQ(Rules(config), (Labels{"M10"}));
  config = EightRanks();
  config.tp = 1;
  EXPECT_EQ(Rules(config), (Labels{"G14"}));
}

TEST(CheckConfigTest, WorldAndBatch) {
  ParallelConfig config = EightRanks();
  config.world_size = 10;
  EXPECT_EQ(Rules(config), (Labels{"G1"}));
  EXPECT_EQ(HintOf(config, "G1"), "world size 8, 12");
  config = EightRanks();
  config.global_batch_size = 18;
  EXPECT_EQ(Rules(config), (Labels{"B2"}));
  EXPECT_EQ(HintOf(config, "B2"), "global batch size 16, 20");
  config.global_batch_size = 2;
  EXPECT_EQ(HintOf(config, "B2"), "global batch size 4");
  config.global_batch_size = 0;
  config.micro_batch_size = -1;
  EXPECT_EQ(Rules(config), (Labels{"B1", "B1"}));
}

TEST(CheckConfigTest, ActivationsOfAMicroBatch) {
  ParallelConfig config;
  config.seq_length = 128;
  ModelDims model = TinyGpt();
  model.vocab = 512;
  config.micro_batch_size = config.global_batch_size = int64_t{1} << 26;
  EXPECT_EQ(Rules(config, model), Labels{});
  config.micro_batch_size = config.global_batch_size = int64_t{1} << 40;
  EXPECT_EQ(Rules(config, model), Labels{"T3"});
  EXPECT_EQ(HintOf(config, "T3", model), "micro-batch size 67108864");
  config.tp = config.world_size = 4;
  EXPECT_EQ(HintOf(config, "T3", model), "micro-batch size 268435456");
  config.world_size = 1 << 18;
  config.micro_batch_size = 1 << 20;
  config.global_batch_size = int64_t{1} << 36;
  EXPECT_EQ(HintOf(config, "T3", model), "micro-batch size 262144");
  config = ParallelConfig();
  config.seq_length = 1 << 24;
  model.max_positions = 1 << 24;
  EXPECT_EQ(Rules(config, model), Labels{"T3"});
  EXPECT_EQ(HintOf(config, "T3", model), "micro-batch size 1 and sequence length 1048576");
  config.seq_length = 1 << 20;
  EXPECT_EQ(Rules(config, model), Labels{});
}

TEST(CheckConfigTest, Pipelines) {
  ParallelConfig config = EightRanks();
  config.vp = 2;
  EXPECT_EQ(Rules(config), (Labels{"S1"}));
  config.schedule = ScheduleKind::kInterleaved;
  EXPECT_EQ(Rules(config), Labels{});
  config.group_size = 3;
  EXPECT_EQ(Rules(config), (Labels{"P13"}));
  EXPECT_EQ(HintOf(config, "P13"), "group size 2, 4");
  config.vp = 0;
  config.schedule = ScheduleKind::kOneFOneB;
  EXPECT_EQ(Rules(config), (Labels{"S3"}));
  config = EightRanks();
  config.pp = 1;
  config.vp = 2;
  config.schedule = ScheduleKind::kInterleaved;
  EXPECT_EQ(Rules(config), (Labels{"G10"}));
  config.vp = 1;
  EXPECT_EQ(Rules(config), Labels{});
}

TEST(CheckConfigTest, LayoutsDecideTheChunks) {
  ParallelConfig config = EightRanks();
  config.layout.layout = "Et|t|t|tL";
  EXPECT_EQ(Rules(config), (Labels{"S1"}));
  config.schedule = ScheduleKind::kInterleaved;
  const CheckedConfig checked = CheckConfig(config, TinyGpt());
  EXPECT_EQ(checked.violations.ToString(), "");
  EXPECT_EQ(checked.vp, 2);
}

TEST(CheckConfigTest, RecomputationByLayerIsOfTheModelsLayers) {
  ParallelConfig config = EightRanks();
  config.recompute = Recomputation(std::vector<RecomputeKind>(5, RecomputeKind::kFull));
  EXPECT_EQ(Rules(config), Labels{"P19"});
}

TEST(CheckConfigTest, NotAvailableYet) {
  ParallelConfig config = EightRanks();
  config.ep = 2;
  EXPECT_EQ(Rules(config), (Labels{"G12"}));
  config = EightRanks();
  config.zero = 4;
  EXPECT_EQ(Rules(config), (Labels{"U2"}));
}

TEST(CheckConfigTest, ZeroGroupsDivideTheRanksAlongDp) {
  ParallelConfig config = EightRanks();
  config.world_size *= 3;
  config.global_batch_size *= 3;
  const int64_t dp = DataParallelSize(config);
  ASSERT_EQ(dp % 3, 0);
  config.zero_group = 3;
  EXPECT_EQ(Rules(config), (Labels{"U3"}));  // without ZeRO
  config.zero = 3;
  EXPECT_EQ(Rules(config), (Labels{}));
  config.zero_group = 5;
  const CheckedConfig checked = CheckConfig(config, TinyGpt());
  EXPECT_EQ(Rules(config), (Labels{"U3"}));
  EXPECT_NE(checked.violations.ToString().find("ZeRO group 3"), std::string::npos)
      << checked.violations.ToString();
  config.zero_group = 1;
  EXPECT_EQ(Rules(config), (Labels{"U3"}));
  config.zero_group = -1;
  EXPECT_EQ(Rules(config), (Labels{"U3"}));
}

TEST(CheckConfigTest, ReportsEverythingAtOnce) {
  ParallelConfig config = EightRanks();
  config.world_size = 18;
  config.tp = 3;
  config.pp = 3;
  config.vp = 4;
  config.global_batch_size = 3;
  EXPECT_EQ(Rules(config), (Labels{"B2", "M1", "M2", "M4", "M7", "P18", "S1"}));
}

// No number makes the checks abort, overflow or run for long.
TEST(CheckConfigTest, SurvivesAnyNumbers) {
  const std::vector<int64_t> numbers = {INT64_MIN, -1, 0, 1, 3, 65537, INT64_MAX - 1, INT64_MAX};
  for (int64_t a : numbers) {
    for (int64_t b : numbers) {
      for (int64_t c : numbers) {
        ParallelConfig config = EightRanks();
        config.world_size = a;
        config.tp = b;
        config.pp = c;
        config.vp = a;
        config.micro_batch_size = b;
        config.global_batch_size = a;
        config.seq_length = c;
        config.group_size = b;
        config.schedule = ScheduleKind::kInterleaved;
        config.layout.decoder_first_layers = c;
        EXPECT_FALSE(Rules(config, {a, b, c, a, b, c, a, b}).empty()) << a << " " << b << " " << c;
        config = EightRanks();
        config.cp = a;
        config.global_batch_size = b;
        EXPECT_FALSE(Rules(config, {4, INT64_MAX, INT64_MAX, c, 0, INT64_MAX, 1, 1}).empty());
      }
    }
  }
}

}  // namespace
}  // namespace mgc
