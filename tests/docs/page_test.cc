#include "tests/docs/page.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

std::string EmptyFolder(const std::string& name) {
  std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(PageTest, FindsBlocks) {
  const std::vector<PageBlock> blocks = BlocksOf("text\n```sh check\nls\n```\n\n```\nx\ny\n```\n");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].info, "sh check");
  EXPECT_EQ(blocks[0].text, "ls\n");
  EXPECT_EQ(blocks[0].line, 2);
  EXPECT_EQ(blocks[1].text, "x\ny\n");
}

TEST(PageTest, ComparesOutput) {
  EXPECT_TRUE(MatchesOutput("a\nb\n", "a\nb\n\n", false));
  EXPECT_FALSE(MatchesOutput("a\nb\n", "a\nc\n", false));
  EXPECT_FALSE(MatchesOutput("a\n", "a\nb\n", false));
  EXPECT_FALSE(MatchesOutput("a\nb\n", "a\n", false));
  EXPECT_TRUE(MatchesOutput("a\n...\nd\n", "a\nb\nc\nd\n", false));
  EXPECT_TRUE(MatchesOutput("...\nd\n...\n", "d\n", false));
  EXPECT_FALSE(MatchesOutput("a\n...\nd\n", "a\nb\nc\n", false));
}

TEST(PageTest, ComparesShapes) {
  EXPECT_TRUE(MatchesOutput("loss 4.25 |  1 ms\n", "loss 5 | 12.5 ms\n", true));
  EXPECT_TRUE(MatchesOutput("+3.5%, 9 k tokens\n", "-12%, 950 tokens\n", true));
  EXPECT_TRUE(MatchesOutput("318.6 k tokens/s |\n", "1.0 M tokens/s |\n", true));
  EXPECT_FALSE(MatchesOutput("loss 4.25 | 1 ms\n", "loss nan | 1 ms\n", true));
  EXPECT_FALSE(MatchesOutput("4.25\n", "5.25\n", false));
}

TEST(PageTest, RunsCommandsInOrder) {
  const std::string page =
      "```txt a.txt\none\n```\n"
      "```sh check\ncat a.txt\necho two >&2\n```\n```output\none\ntwo\n```\n"
      "```sh\nexit 1\n```\n"
      "```sh check exit=3\nexit 3\n```\n";
  EXPECT_EQ(RunPage(page, EmptyFolder("in_order"), "/nowhere"), std::vector<std::string>());
}

TEST(PageTest, TellsWhatIsOtherwise) {
  const std::string page =
      "```sh check\necho one\n```\n```output\ntwo\n```\n```sh check\nfalse\ntrue\n```\n";
  const std::vector<std::string> problems = RunPage(page, EmptyFolder("otherwise"), "/nowhere");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0], "line 4 shows\ntwo\nbut printed is\none\n");
  EXPECT_EQ(problems[1], "line 7 exits with 1, not 0:\nfalse\ntrue\n");
}

TEST(PageTest, FindsLinksAndCode) {
  const std::string page = "[a](b.md), `x/y.h` and [c](d/)\n```\n[no](no)\n```\n    `no`\n";
  EXPECT_EQ(LinksOf(page), (std::vector<std::string>{"b.md", "d/"}));
  EXPECT_EQ(CodeWordsOf(page), (std::vector<std::string>{"x/y.h"}));
}

}  // namespace
}  // namespace mgc
