#include "graph/plan/text/plan_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The error of the sample's text with one place changed; a change of nothing fails.
std::string ErrorAfter(absl::string_view from, absl::string_view to) {
  const std::string text = PrintPlan(OddPlan());
  EXPECT_THAT(text, HasSubstr(std::string(from)));
  const std::string changed = absl::StrReplaceAll(text, {{from, to}});
  return std::string(ParsePlan(changed, "p.mgc").status().message());
}

TEST(PlanTextTest, EveryFieldReadsBack) {
  const std::string text = PrintPlan(OddPlan());
  const absl::StatusOr<Plan> read = ParsePlan(text, "p.mgc");
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
  EXPECT_EQ(PrintPlan(*read), text);
}

TEST(PlanTextTest, TextAndBytesSayTheSame) {
  const Plan plan = OddPlan();
  const absl::StatusOr<Plan> read = ParsePlan(PrintPlan(plan), "p.mgc");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanDifference(plan, *read), "");
}

TEST(PlanTextTest, SteadyStatesAreWrittenOnce) {
  EXPECT_THAT(PrintPlan(OddPlan()),
              HasSubstr("    compute {\n"
                        "      0F0 frame 1024 output 8192\n"
                        "      repeat 7 shift 1 {\n"
                        "        0F1 frame (1536 1024) output 8192\n"
                        "        0B0 frame (1024 1536) grad_input (8448 8704 8960) wait 0RECV_B0\n"
                        "      }\n"
                        "      0B7 frame 1536 grad_input 8704 wait 0RECV_B7\n"));
}

TEST(PlanTextTest, ActionsAreNamedByStageAndEntriesByNameWhereItIsTheirs) {
  const std::string text = PrintPlan(OddPlan());
  EXPECT_THAT(text, HasSubstr("    last_backward @\"layer forward\" layer 3 ("));
  EXPECT_THAT(text, HasSubstr("    forward @\"\" layer embedding (transient=0, input=frame, "
                              "output=output)\n"
                              "    backward 2 layer embedding (transient=0, grad_input=grad_input, "
                              "2=frame)\n"
                              "    backward @\"layer forward\" (transient=128, \"grads:he ad:\"=0, "
                              "frame=frame+64)\n"));
}

TEST(PlanTextTest, ErrorsHavePlaces) {
  EXPECT_EQ(ErrorAfter("version 5", "version 9"),
            "p.mgc:1:18: a plan of version 9; this program reads version 5 [text_c10]");
  EXPECT_THAT(ErrorAfter("gelu(", "gelo("), HasSubstr("unknown op `gelo` (did you mean gelu?)"));
  EXPECT_THAT(ErrorAfter("0RECV_B2", "0RECVB2"),
              HasSubstr("expected an action or transfer, such as `0F3` or `0SEND_F3`"));
  EXPECT_THAT(ErrorAfter("0F0 frame", "2F0 frame"),
              HasSubstr("this class has no stage 2 [text_c4]"));
  EXPECT_THAT(ErrorAfter("shift 1", "shift x"), HasSubstr("expected a number, found `x`"));
  EXPECT_THAT(ErrorAfter("repeat 7", "repeat 9999999"),
              HasSubstr("at most 8388608 entries and refs"));
  EXPECT_THAT(ErrorAfter("slot %1", "slot %2"), HasSubstr("expected slot %1"));
  EXPECT_THAT(ErrorAfter("in frame at 0", "in frames at 0"),
              HasSubstr("there is no formal frames (did you mean frame?)"));
  EXPECT_THAT(ErrorAfter("in frame at 0", "in states at 0"),
              HasSubstr("the segment has no formal states [text_c4]"));
  EXPECT_THAT(ErrorAfter("gradient \"grads:head\"", "gradient \"frame:head\""),
              HasSubstr("there is no formal \"frame:head\""));
  EXPECT_THAT(ErrorAfter("hold @layer", "hold @layers"),
              HasSubstr("no block is named @layers (did you mean layer?) [text_c4]"));
  EXPECT_THAT(
      ErrorAfter("last_backward @\"layer forward\" layer", "last_backward @\"layer\" layer"),
      HasSubstr("no segment is named @layer"));
  EXPECT_THAT(ErrorAfter("backward 2", "backward 3"), HasSubstr("there is no segment 3"));
  EXPECT_THAT(ErrorAfter("input=frame,", "output=frame,"),
              HasSubstr("expected the next formal, input, found `output`"));
  EXPECT_THAT(ErrorAfter("2=frame)", "2=frame, 3=frame)"),
              HasSubstr("the segment has no more formals"));
  EXPECT_THAT(ErrorAfter("0F0 frame 1024", "0F0 frame (1024 1)"), HasSubstr("expected a number"));
  EXPECT_THAT(ErrorAfter("  memory params", "  memories params"),
              HasSubstr("expected a line of a class"));
  EXPECT_THAT(ErrorAfter("=grad_output)", "=grad_out)"), HasSubstr("expected an address, `frame`"));
}

TEST(PlanTextTest, PlansAreCheckedAndViolationsHavePlaces) {
  const std::string text = PrintPlan(OddPlan());
  const size_t segment = text.find("segment @\"layer forward\"");
  ASSERT_NE(segment, std::string::npos) << text;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(segment), '\n');
  EXPECT_THAT(ErrorAfter("wait 0 update", "wait 1 update"),
              StartsWith(absl::StrCat("p.mgc:", line,
                                      ":1: segment layer forward: "
                                      "instruction 3 is of collective 1 of 1 [plan_c8]")));
  EXPECT_THAT(ErrorAfter("peer 0", "peer 1"), ContainsRegex("p.mgc:[0-9]+:1: class 1: "));
}

}  // namespace
}  // namespace mgc
