// Silent gradient bugs that no sharding shows: the right collectives, the wrong numbers. Each is
// one edit of a compiled plan that stays readable and well laid out; the proof of the meaning
// refuses it.

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "graph/types/machine.h"
#include "graph/verify/placement/placement.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

// The plan of cases/<name>.mgc for two ranks.
Plan CompileCase(absl::string_view name, int64_t tp, int64_t batch, int64_t seq) {
  const std::string path = absl::StrCat("tests/verify/cases/", name, ".mgc");
  const absl::StatusOr<std::string> text = ReadFile(path);
  MGC_CHECK(text.ok()) << text.status().ToString();
  const absl::StatusOr<Graph> logical = ParseGraph(*text, path);
  MGC_CHECK(logical.ok()) << logical.status().ToString();
  CompileOptions options;
  options.parallel.world_size = 2;
  options.parallel.tp = tp;
  options.parallel.global_batch_size = batch;
  options.parallel.seq_length = seq;
  options.machine = *FindMachinePreset("cpu-threads");
  absl::StatusOr<Plan> plan = Compile(*logical, {1, 2, 2, 2, 1, 2, 4, seq}, options);
  MGC_CHECK(plan.ok()) << plan.status().ToString();
  return *std::move(plan);
}

// Whether everything but the meaning holds of a plan, and a finding about that says `what`.
void ExpectWrongValues(const Plan& plan, absl::string_view what) {
  ASSERT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan);
  Diagnostics shardings;
  CheckPlacement(plan, &shardings);
  EXPECT_TRUE(shardings.empty()) << shardings.ToString();
  const VerifyReport report = VerifyPlan(plan);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.findings.ToString(), HasSubstr(std::string(what)));
  for (const Diagnostic& finding : report.findings) {
    EXPECT_TRUE(absl::StartsWith(finding.label, "meaning_v")) << ToString(finding);
  }
}

void SetReal(Plan* plan, absl::string_view segment, absl::string_view op, double from, double to) {
  Segment& s = SegmentOf(plan, segment);
  for (Instr& instr : s.instrs) {
    if (instr.op == nullptr || instr.op->name != op || instr.attrs.Real("value") != from) continue;
    instr.attrs.Set("value", to);
    return;
  }
  FAIL() << "no " << op << " of " << from;
}

TEST(WrongValuesTest, LabelSmoothingOverTheLocalVocabulary) {
  Plan plan = CompileCase("label_smoothing", 2, 1, 1);
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan).findings.ToString();
  SetReal(&plan, "head.forward", "scale", 0.25, 0.5);  // 1 / (V / tp)
  ExpectWrongValues(plan, "scale: `mean` @m[-,-] differs");
}

// An auxiliary loss whose gradient is scaled once more than the loss.
TEST(WrongValuesTest, GradientSeededTwice) {
  Plan plan = CompileCase("local_counts", 1, 2, 3);
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan).findings.ToString();
  SetReal(&plan, "head.backward", "constant", 1.0, 2.0);
  ExpectWrongValues(plan, "parameter `w` (and 1 nearer to the input): its gradient");
}

// The divisor is another number of the same vector: the loss instead of the tokens.
TEST(WrongValuesTest, WrongCount) {
  Plan plan = CompileCase("local_counts", 1, 2, 3);
  Segment& s = SegmentOf(&plan, "step.update1");
  Instr& tokens = s.instrs[InstrOf(s, "slice")];
  tokens.attrs.Set("begin", tokens.attrs.Int("begin") - 1);
  tokens.attrs.Set("end", tokens.attrs.Int("end") - 1);
  ExpectWrongValues(plan, "the reported `loss` is not that of a single device");
}

// A run of the plan leaves out what flows through one op; its model does not say that it may.
TEST(WrongValuesTest, AnOpWithoutGradient) {
  Plan plan = CompileCase("no_gradient", 1, 2, 3);
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan).findings.ToString();
  const std::string stopped = PrintGraph(plan.model);
  const std::string flowing = absl::StrReplaceAll(stopped, {{"stop_gradient(%y)", "reshard(%y)"}});
  ASSERT_NE(flowing, stopped);
  plan.model = ParseGraph(flowing, "flowing").value();
  ExpectWrongValues(plan, "model: ");
  const VerifyReport report = VerifyPlan(plan);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(ToString(report.findings[0]),
            "model: the ops' gradient rules do not give the derivative of the loss [meaning_v8]");
}

// No mistake: dims of 2,048 without a name are not executed at that size.
TEST(WrongValuesTest, LargeDimsWithoutANameAreProved) {
  Plan plan = CompileCase("unnamed_dims", 1, 2, 3);
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan).findings.ToString();
  SetReal(&plan, "head.backward", "constant", 1.0, 2.0);
  ExpectWrongValues(plan, "its gradient");
}

// What an optimizer multiplies gradients by is divided by the token count, and again.
TEST(WrongValuesTest, DividedTwice) {
  Plan plan = CompileTiny("tp2");
  Segment& s = SegmentOf(&plan, "step.update3");
  const size_t clip = InstrOf(s, "mul", 1);
  Instr again = s.instrs[clip];
  again.inputs[0] = again.outputs[0];
  s.instrs.insert(s.instrs.begin() + static_cast<int64_t>(clip) + 1, again);
  ExpectWrongValues(plan, "its state m");
}

}  // namespace
}  // namespace mgc
