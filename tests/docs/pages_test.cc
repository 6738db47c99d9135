// The README and all pages: their commands print what they show, their links lead somewhere.
// (tools/check_style looks for the files they name.)

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/docs/page.h"

namespace mgc {
namespace {

namespace fs = std::filesystem;

// Paths from the repository's root, sorted.
std::vector<std::string> Pages() {
  std::vector<std::string> pages = {"README.md"};
  for (const auto& entry : fs::recursive_directory_iterator("docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path().string());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

std::string TextOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

class PagesTest : public testing::TestWithParam<std::string> {};

TEST_P(PagesTest, CommandsPrintWhatIsShown) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/", absl::StrReplaceAll(GetParam(), {{"/", "_"}}), ".run");
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path root = fs::current_path();
  const std::string commands =
      absl::StrCat((root / "tools").string(), ":", (root / "examples").string());
  for (const std::string& problem : RunPage(TextOf(GetParam()), folder, commands)) {
    ADD_FAILURE() << GetParam() << ", " << problem;
  }
}

TEST_P(PagesTest, LinksLeadSomewhere) {
  for (const std::string& link : LinksOf(TextOf(GetParam()))) {
    if (absl::StrContains(link, "://") || link[0] == '#') continue;
    const std::vector<std::string> parts = absl::StrSplit(link, '#');
    EXPECT_TRUE(fs::exists(fs::path(GetParam()).parent_path() / parts[0])) << link;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PagesTest, testing::ValuesIn(Pages()),
    [](const testing::TestParamInfo<std::string>& info) {
      return absl::StrReplaceAll(info.param, {{"/", "_"}, {".", "_"}, {"-", "_"}});
    });

TEST(IndexTest, ListsEveryPage) {
  const std::vector<std::string> links = LinksOf(TextOf("docs/index.md"));
  for (const std::string& page : Pages()) {
    const std::vector<std::string> parts = absl::StrSplit(page, '/');
    if (parts.size() != 2 || parts[1] == "index.md") continue;
    EXPECT_EQ(std::count(links.begin(), links.end(), parts[1]), 1) << page;
  }
}

}  // namespace
}  // namespace mgc
