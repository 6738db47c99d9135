#include "runtime/metrics/metrics.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

StepRecord Example() {
  StepRecord record;
  record.step = 10;
  record.loss = 4.2130002975;
  record.grad_norm = 1.31;
  record.lr = 0.1 + 0.2;
  record.ms = 43;
  record.predicted_ms = 41.2;
  record.tokens_per_second = 95000;
  record.peak_bytes = 212 << 20;
  return record;
}

TEST(StepLine, ShowsAllFields) {
  StepRecord record = Example();
  EXPECT_THAT(StepLine(record, "samples"), HasSubstr(" samples/s | "));
  EXPECT_EQ(StepLine(record),
            "step 10 | loss 4.2130 | grad norm 1.310 | lr 3.00e-01 | 43.0 ms (plan 41.2, +4.4%) "
            "| 95.0 k tokens/s | 212.0 MiB");
  record.flops_per_second = 1.94e9;
  record.warm_up = true;
  EXPECT_THAT(StepLine(record), HasSubstr("| 43.0 ms warm-up (plan 41.2, +4.4%) | "));
  EXPECT_THAT(StepLine(record), HasSubstr(" tokens/s | 1.9 G FLOP/s | 212.0 MiB"));
  record.peak_share = 0.0214;
  record.flops_per_second = 3.1e12;
  record.warm_up = false;
  EXPECT_THAT(StepLine(record), HasSubstr(" tokens/s | 3.1 T FLOP/s (2.1% of peak) | 212.0 MiB"));
  record.peak_share.reset();
  record.flops_per_second.reset();
  record.predicted_ms.reset();
  record.tokens_per_second = 512;
  EXPECT_EQ(StepLine(record),
            "step 10 | loss 4.2130 | grad norm 1.310 | lr 3.00e-01 | 43.0 ms | 512 tokens/s | "
            "212.0 MiB");
}

TEST(StepLine, ShowsWaitsThatMatter) {
  StepRecord record = Example();
  record.data_wait_ms = record.checkpoint_stall_ms = 99;
  EXPECT_THAT(StepLine(record), ::testing::EndsWith(" | 212.0 MiB"));
  record.data_wait_ms = 120;
  record.checkpoint_stall_ms = 300;
  EXPECT_THAT(StepLine(record),
              ::testing::EndsWith(" | data wait 120.0 ms | checkpoint stall 300.0 ms"));
  record.ms = 1300;
  EXPECT_THAT(StepLine(record), ::testing::EndsWith(" MiB | checkpoint stall 300.0 ms"));
}

TEST(StepJson, HoldsWhatTheLineLeavesOut) {
  StepRecord record = Example();
  record.flops_per_second = 3e12;
  record.peak_share = 0.25;
  record.warm_up = true;
  record.data_wait_ms = 1.5;
  record.checkpoint_stall_ms = 2.5;
  EXPECT_THAT(StepJson(record),
              ::testing::EndsWith(",\"predicted_ms\":41.2,\"flops_per_second\":3e+12,"
                                  "\"peak_share\":0.25,\"peak_bytes\":222298112,\"warm_up\":true,"
                                  "\"data_wait_ms\":1.5,\"checkpoint_stall_ms\":2.5}"));
}

TEST(StepRecord, ShowsEveryLossTerm) {
  StepRecord record = Example();
  record.other_losses = {{"router", 0.5}, {"z", 0.25}};
  EXPECT_THAT(StepLine(record),
              HasSubstr("| loss 4.2130 | router 0.5000 | z 0.2500 | grad norm 1.310 |"));
  EXPECT_THAT(StepJson(record), HasSubstr("\"loss\":4.2130002975,\"other_losses\":{\"router\":0.5,"
                                          "\"z\":0.25},\"grad_norm\":1.31,"));
}

TEST(StepRecord, ShowsTheLossScale) {
  StepRecord record = Example();
  EXPECT_THAT(StepJson(record), ::testing::Not(HasSubstr("loss_scale")));
  record.loss_scale = 65536;
  EXPECT_THAT(StepLine(record),
              HasSubstr("| grad norm 1.310 | loss scale 65536 | lr 3.00e-01 | 43.0 ms"));
  EXPECT_THAT(StepJson(record),
              HasSubstr("\"grad_norm\":1.31,\"loss_scale\":65536,\"left_out\":false,\"lr\""));
  record.left_out = true;
  record.grad_norm = std::numeric_limits<double>::infinity();
  EXPECT_THAT(StepLine(record),
              HasSubstr("| grad norm inf | loss scale 65536 | left out | lr 3.00e-01"));
  EXPECT_THAT(StepJson(record), HasSubstr("\"loss_scale\":65536,\"left_out\":true"));
  record.grad_norm = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(StepLine(record), HasSubstr("| grad norm nan |"));
}

TEST(StepJson, NumbersAreShortestAndExact) {
  EXPECT_EQ(
      StepJson(Example()),
      "{\"step\":10,\"loss\":4.2130002975,\"grad_norm\":1.31,\"lr\":0.30000000000000004,\"ms\":43,"
      "\"tokens_per_second\":95000,\"predicted_ms\":41.2,\"peak_bytes\":222298112}");
}

TEST(StepJson, NonFiniteNumbersAreStrings) {
  StepRecord record = Example();
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.grad_norm = std::numeric_limits<double>::infinity();
  JsonValue json = ParseJson(StepJson(record), "line").value();
  EXPECT_EQ(json.Find("loss")->text, "NaN");
  EXPECT_EQ(json.Find("grad_norm")->text, "Infinity");
}

TEST(EvalRecord, SaysTheStep) {
  const EvalRecord record = {10, 4.25, 8, 256};
  EXPECT_EQ(EvalLine(record), "evaluation after step 10 | loss 4.2500 | 8 samples");
  EXPECT_EQ(EvalJson(record),
            "{\"step\":10,\"eval_loss\":4.25,\"eval_samples\":8,\"eval_tokens\":256}");
}

TEST(EvalRecord, SaysDocumentAndPerplexity) {
  EvalRecord record = {10, 4.25, 8, 256};
  record.perplexity = 70.125;
  EXPECT_EQ(EvalLine(record),
            "evaluation after step 10 | loss 4.2500 | perplexity 70.12 | 8 samples");
  record.document = 3;
  EXPECT_EQ(EvalLine(record), "document 3 | loss 4.2500 | perplexity 70.12 | 256 tokens");
  EXPECT_EQ(EvalJson(record),
            "{\"step\":10,\"eval_loss\":4.25,\"document\":3,\"eval_perplexity\":70.125,"
            "\"eval_samples\":8,\"eval_tokens\":256}");
}

}  // namespace
}  // namespace mgc
