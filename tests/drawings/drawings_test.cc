// Every drawing of the plan corpus, the largest models included, in overview and in detail, is one
// that Graphviz lays out in under five seconds, with at most some 300 nodes.

#include <string>

#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"
#include "tools/cli/svg.h"
#include "tools/views/drawings/dot.h"

namespace mgc {
namespace {

constexpr int kSeconds = 5;

class DrawingsTest : public testing::TestWithParam<PlanCase> {};

void CheckDrawing(const DotDrawing& drawing, int least_nodes) {
  EXPECT_LE(drawing.nodes, 300);
  EXPECT_GE(drawing.nodes, least_nodes);
  const absl::StatusOr<std::string> svg = RenderSvg(drawing.dot, kSeconds);
  if (absl::IsNotFound(svg.status())) GTEST_SKIP() << svg.status();
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_NE(svg->find("</svg>"), std::string::npos);
}

TEST_P(DrawingsTest, GraphvizDrawsIt) {
  const Plan plan = CompilePlanCase(GetParam());
  DotOptions detail;
  detail.expand = DotExpand::kSegments;
  CheckDrawing(DrawPlan(plan, detail), 20);
  DotOptions overview;
  overview.expand = DotExpand::kNone;
  CheckDrawing(DrawPlan(plan, overview), 1);
}

std::string NameOfCase(const testing::TestParamInfo<PlanCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Tiny, DrawingsTest, testing::ValuesIn(TinyPlanCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Large, DrawingsTest, testing::ValuesIn(LargePlanCases()), NameOfCase);

}  // namespace
}  // namespace mgc
