#include "tools/cli/parallel_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

struct Parsed {
  ParallelFlags given;
  ParsedFlags result;
};

Parsed Parse(const std::vector<std::string>& words) {
  Parsed parsed;
  Flags flags({"tool", "", "", {}, ""});
  AddMeshFlags(&flags, &parsed.given);
  AddScheduleFlags(&flags, &parsed.given);
  AddTrainingFlags(&flags, &parsed.given);
  parsed.result = flags.Parse(words);
  CheckWords(&parsed.given, &parsed.result);
  return parsed;
}

std::string Rules(const Diagnostics& violations) {
  return absl::StrJoin(violations, " ", [](std::string* out, const Diagnostic& violation) {
    out->append(violation.label);
  });
}

TEST(ParallelFlagsTest, Defaults) {
  const Parsed parsed = Parse({});
  const ParallelConfig config = ConfigOf(parsed.given, 512);
  EXPECT_EQ(config.world_size, 1);
  EXPECT_EQ(config.vp, 0);
  EXPECT_EQ(config.micro_batch_size, 1);
  EXPECT_EQ(config.global_batch_size, 1);
  EXPECT_EQ(config.seq_length, 512);
  EXPECT_EQ(config.schedule, ScheduleKind::kOneFOneB);
  EXPECT_EQ(config.recompute, RecomputeKind::kNone);
  EXPECT_EQ(config.zero, 0);
  EXPECT_EQ(config.order, kDefaultAxisOrder);
}

TEST(ParallelFlagsTest, WorldAndBatchFollowFromTheRest) {
  EXPECT_EQ(ConfigOf(Parse({"--tp", "2", "--pp", "4"}).given, 1).world_size, 8);
  const ParallelConfig config = ConfigOf(
      Parse({"--world-size", "16", "--tp", "2", "--pp", "2", "--micro-batch-size", "3"}).given, 1);
  EXPECT_EQ(config.global_batch_size, 12);
}

// What Megatron-LM makes of batch sizes.
TEST(ParallelFlagsTest, MicroBatchesAreMegatrons) {
  const std::string vectors = ReadFile("tests/data/micro_batches.txt").value();
  int cases = 0;
  for (absl::string_view line : absl::StrSplit(vectors, '\n', absl::SkipEmpty())) {
    SCOPED_TRACE(line);
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    ASSERT_GE(words.size(), 5u);
    std::vector<std::string> flags = {
        "--global-batch-size", words[0], "--micro-batch-size", words[1], "--world-size", words[2]};
    if (words[3] == "decrease") flags.push_back("--decrease-batch-size-if-needed");
    const ParallelConfig config = ConfigOf(Parse(flags).given, 1);
    const int64_t micro_batches = MicroBatchesPerStep(config);
    ++cases;
    if (words[4] == "reject") {
      EXPECT_EQ(micro_batches, 0);
      continue;
    }
    EXPECT_EQ(absl::StrCat(micro_batches), words[4]);
    EXPECT_EQ(absl::StrCat(config.global_batch_size), words[5]);
  }
  EXPECT_GE(cases, 6);
}

TEST(ParallelFlagsTest, MegatronsNamesMeanTheSame) {
  const ParallelConfig config =
      ConfigOf(Parse({"--tensor-model-parallel-size",
                      "2",
                      "--pipeline-model-parallel-size=4",
                      "--num-virtual-stages-per-pipeline-rank",
                      "3",
                      "--context-parallel-size",
                      "1",
                      "--expert-model-parallel-size",
                      "1",
                      "--expert-tensor-parallel-size",
                      "2",
                      "--sequence-parallel",
                      "--recompute-granularity",
                      "full",
                      "--use-distributed-optimizer",
                      "--pipeline-model-parallel-layout",
                      "Et|tL",
                      "--account-for-loss-in-pipeline-split",
                      "--decoder-first-pipeline-num-layers",
                      "5",
                      "--microbatch-group-size-per-virtual-pipeline-stage",
                      "6",
                      "--use-tp-pp-dp-mapping",
                      "--schedule",
                      "interleaved"})
                   .given,
               1);
  EXPECT_EQ(config.tp, 2);
  EXPECT_EQ(config.pp, 4);
  EXPECT_EQ(config.vp, 3);
  EXPECT_EQ(config.etp, 2);
  EXPECT_TRUE(config.sequence_parallel);
  EXPECT_EQ(config.recompute, RecomputeKind::kFull);
  EXPECT_EQ(config.zero, 1);
  EXPECT_EQ(*config.layout.layout, "Et|tL");
  EXPECT_TRUE(config.layout.account_for_loss);
  EXPECT_EQ(*config.layout.decoder_first_layers, 5);
  EXPECT_EQ(config.group_size, 6);
  EXPECT_EQ(config.order, "tp-cp-ep-pp-dp");
  EXPECT_EQ(ConfigOf(Parse({"--virtual-pipeline-model-parallel-size", "2"}).given, 1).vp, 2);
}

TEST(ParallelFlagsTest, ValuesWrongByThemselves) {
  EXPECT_EQ(Rules(Parse({"--tp", "0", "--vp", "-1", "--zero", "4", "--schedule", "zb",
                         "--micro-batch-size", "0", "--seq-length", "x", "--pipeline-layout", "Eq",
                         "--order", "tp-tp", "--recompute", "full*2,half"})
                      .result.errors),
            "G0 P0 F4 B1 F2 F4 G0 P3 F4");
}

TEST(ParallelFlagsTest, FlagsThatContradictEachOther) {
  const auto rules = [](const std::vector<std::string>& words) {
    return Rules(Parse(words).result.errors);
  };
  EXPECT_EQ(rules({"--zero", "0", "--use-distributed-optimizer"}), "F7");
  EXPECT_EQ(rules({"--zero", "1", "--use-distributed-optimizer"}), "");
  EXPECT_EQ(rules({"--zero", "2", "--no-reshard-after-forward"}), "F7");
  EXPECT_EQ(rules({"--zero", "3", "--no-reshard-after-forward"}), "");
  EXPECT_EQ(rules({"--zero", "1", "--zero-group", "0"}), "U3");
  EXPECT_EQ(rules({"--order", "tp-pp-dp", "--use-tp-pp-dp-mapping"}), "F7");
  EXPECT_EQ(rules({"--order", "tp-cp-ep-pp-dp", "--use-tp-pp-dp-mapping"}), "");
}

TEST(ParallelFlagsTest, RulesOfBadFlagsAreLeftOut) {
  Diagnostics all;
  for (const char* rule : {"M1", "B2", "P18"}) all.Add({rule, ""});
  EXPECT_EQ(Rules(WithoutRulesOf({}, all)), "M1 B2 P18");
  EXPECT_EQ(Rules(WithoutRulesOf({"--micro-batch-size"}, all)), "M1 P18");
  EXPECT_EQ(Rules(WithoutRulesOf({"--tp"}, all)), "P18");
}

}  // namespace
}  // namespace mgc
