#include "runtime/metrics/open_metrics.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

StepRecord Example() {
  StepRecord record;
  record.step = 10;
  record.loss = 4.25;
  record.other_losses = {{"a\"b\\", 0.5}};
  record.ms = 500;
  record.tokens = 100;
  record.data_wait_ms = 250;
  record.peak_bytes = 1024;
  return record;
}

TEST(OpenMetrics, NothingBeforeTheFirstStep) { EXPECT_EQ(OpenMetrics().Text(), "# EOF\n"); }

TEST(OpenMetrics, SumsOverSteps) {
  OpenMetrics metrics;
  metrics.Take(Example());
  StepRecord second = Example();
  second.step = 11;
  second.left_out = true;
  second.grad_norm = std::numeric_limits<double>::infinity();
  metrics.Take(second);
  metrics.Take(EvalRecord{11, 4.5, 8, 256});
  const std::string text = metrics.Text();
  for (const char* line :
       {"mgc_steps_total 11\n", "mgc_steps_left_out_total 1\n", "mgc_tokens_total 200\n",
        "# UNIT mgc_data_wait_seconds seconds\n", "mgc_data_wait_seconds_total 0.5\n",
        "mgc_loss 4.25\n", "mgc_other_loss{term=\"a\\\"b\\\\\\\\\"} 0.5\n",
        "mgc_gradient_norm +Inf\n", "# UNIT mgc_step_seconds seconds\n", "mgc_step_seconds 0.5\n",
        "mgc_peak_memory_bytes 1024\n", "mgc_eval_loss 4.5\n# EOF\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

// Families are whole: type, unit and help stand before the samples, which have the family's name.
TEST(OpenMetrics, FamiliesAreWhole) {
  OpenMetrics metrics;
  StepRecord record = Example();
  record.predicted_ms = record.flops_per_second = record.peak_share = record.loss_scale = 1;
  metrics.Take(record);
  const std::string text = metrics.Text();
  std::set<std::string> names;
  std::string name;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
    if (absl::StartsWith(line, "# TYPE ")) {
      name = words[2];
      EXPECT_TRUE(names.insert(name).second) << name;
    } else if (line != "# EOF") {
      EXPECT_TRUE(absl::StartsWith(words[0] == "#" ? words[2] : words[0], name)) << line;
      const bool unit = words[1] == "UNIT";
      EXPECT_TRUE(!unit || absl::EndsWith(name, absl::StrCat("_", words[3]))) << line;
    }
  }
  EXPECT_GT(names.size(), 14);
}

}  // namespace
}  // namespace mgc
