#include "tools/cli/svg.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(SvgTest, RendersWhereDotIsInstalled) {
  const absl::StatusOr<std::string> svg = RenderSvg("digraph plan { a -> b }");
  if (absl::IsNotFound(svg.status())) GTEST_SKIP() << svg.status();
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_TRUE(absl::StrContains(*svg, "<svg"));
}

TEST(SvgTest, SaysWhenDotFails) {
  const absl::Status status = RenderSvg("no graph at all {").status();
  EXPECT_TRUE(absl::IsNotFound(status) || absl::IsInternal(status)) << status;
}

TEST(SvgTest, SaysWhenThereIsNoDot) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  EXPECT_TRUE(absl::IsNotFound(RenderSvg("digraph plan {}").status()));
  setenv("PATH", path.c_str(), 1);
}

TEST(SvgTest, StopsAtTheDeadline) {
  const absl::Status status = RenderSvg("digraph plan { a -> b }", 0).status();
  EXPECT_TRUE(absl::IsNotFound(status) || absl::IsDeadlineExceeded(status)) << status;
}

}  // namespace
}  // namespace mgc
