#include "tools/cli/step_sizes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::HasSubstr;

std::string Text(absl::string_view text, int64_t seq_length) {
  const absl::StatusOr<std::vector<StepSize>> sizes = ParseStepSizes(text, seq_length);
  if (!sizes.ok()) return std::string(sizes.status().message());
  std::string joined;
  for (const auto& [sample, batch] : *sizes) absl::StrAppend(&joined, sample, ":", batch, " ");
  return joined;
}

TEST(ParseStepSizesTest, ThresholdsAreTokensAndBecomeSamples) {
  EXPECT_EQ(Text("0:768 250B:1536 500B:3072", 4096), "0:768 61035156:1536 122070312:3072 ");
  EXPECT_EQ(Text("1.5K:32,0:16", 512), "0:16 2:32 ");
  EXPECT_EQ(Text("0:1k 1t:2K", 1), "0:1000 1000000000000:2000 ");
}

TEST(ParseStepSizesTest, OtherWordsAreNamed) {
  EXPECT_THAT(Text("0:16 4K", 1), HasSubstr("`4K` is no TOKENS:SAMPLES"));
  EXPECT_THAT(Text("0:16 -4:8", 1), HasSubstr("`-4:8`"));
  EXPECT_THAT(Text("0:16 4X:8", 1), HasSubstr("`4X:8`"));
  EXPECT_THAT(Text("nan:16", 1), HasSubstr("`nan:16`"));
  EXPECT_THAT(Text("0:4.5", 1), HasSubstr("`0:4.5`"));
  EXPECT_THAT(Text("0:1e30", 1), HasSubstr("`0:1e30`"));
  EXPECT_THAT(Text(" ,", 1), HasSubstr("names no size"));
}

Plan FourMicroBatchesOfSix() {
  Plan plan;
  plan.global_batch_size = 24;
  plan.num_micro_batches = 4;
  plan.seq_length = 8;
  return plan;
}

std::string Problems(absl::string_view text) {
  const Plan plan = FourMicroBatchesOfSix();
  return CheckStepSizes(ParseStepSizes(text, plan.seq_length).value(), plan).ToString();
}

TEST(CheckStepSizesTest, WholeMicroBatchesUpToThePlans) {
  EXPECT_EQ(Problems("0:6 96:12 1K:24"), "");
  EXPECT_EQ(Problems("0:24"), "");
  EXPECT_EQ(Problems("0:24 80:6"), "");
}

TEST(CheckStepSizesTest, AllViolationsAtOnce) {
  const std::string problems = Problems("16:7 17:12 800:48");
  EXPECT_THAT(problems, HasSubstr("steps have no size before sample 2"));
  EXPECT_THAT(problems, HasSubstr("both begin at sample 2"));
  EXPECT_THAT(problems, HasSubstr("a step of 7 samples is not of whole micro-batches of 6"));
  EXPECT_THAT(problems, HasSubstr("6, 12 samples"));
  EXPECT_THAT(problems, HasSubstr("the largest step takes 48 samples, the plan's 24"));
}

TEST(CheckStepSizesTest, AStepHasASample) {
  EXPECT_THAT(Problems("0:0 80:24"), HasSubstr("a step of 0 samples"));
}

}  // namespace
}  // namespace mgc
