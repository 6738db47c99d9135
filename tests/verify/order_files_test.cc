// Orders of communication known to hang, as plans: refused, with the message that the file states
// behind `// | `. Their safe lowerings, without such lines: accepted.

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/order/order.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

class OrderFilesTest : public ::testing::TestWithParam<const char*> {};

std::string Stated(const std::string& text) {
  std::string stated;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "// | ")) absl::StrAppend(&stated, line, "\n");
  }
  return stated;
}

TEST_P(OrderFilesTest, IsJudgedAsStated) {
  const std::string path = absl::StrCat("tests/verify/orders/", GetParam(), ".mgc");
  const absl::StatusOr<std::string> text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<Plan> plan = ParsePlan(*text, path);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Diagnostics findings;
  CheckOrder(*plan, &findings);
  CheckMemory(*plan, &findings);
  std::string found;
  for (const Diagnostic& finding : findings) {
    absl::StrAppend(&found, ToString(finding), "\n");
    EXPECT_EQ(finding.label, "order_v4");
    EXPECT_THAT(finding.drawing,
                ::testing::MatchesRegex("digraph deadlock [{]\n(.|\n)* -> (.|\n)*[}]"));
  }
  std::cout << found;
  EXPECT_EQ(found, Stated(*text));
  const bool refused =
      !absl::StrContains(GetParam(), "total") && absl::string_view(GetParam()) != "gpipe_naive";
  EXPECT_EQ(!found.empty(), refused);
}

INSTANTIATE_TEST_SUITE_P(Orders, OrderFilesTest,
                         ::testing::Values("1f1b_naive", "1f1b_total", "gpipe_naive",
                                           "interleaved_naive", "interleaved_total",
                                           "breadth_first_naive", "breadth_first_total",
                                           "zero_bubble_naive", "zero_bubble_total",
                                           "deferred_receives", "deferred_receives_swapped",
                                           "deferred_receives_total"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mgc
