#include "tools/cli/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

std::string Path(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

TEST(WriteAllTest, WritesEveryFile) {
  ASSERT_TRUE(WriteAll({{Path("a"), "one"}, {Path("b"), "two"}}).ok());
  EXPECT_EQ(*ReadFile(Path("a")), "one");
  EXPECT_EQ(*ReadFile(Path("b")), "two");
}

TEST(WriteAllTest, AfterAnErrorAllFilesAreAsBefore) {
  ASSERT_TRUE(WriteFileAtomically(Path("old"), "before").ok());
  const absl::Status status =
      WriteAll({{Path("old"), "after"}, {Path("new"), "x"}, {Path("missing/file"), "x"}});
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(*ReadFile(Path("old")), "before");
  EXPECT_FALSE(ReadFile(Path("new")).ok());
}

TEST(WriteAllTest, RefusesOnePathTwice) {
  EXPECT_EQ(WriteAll({{Path("twice"), "1"}, {Path("twice"), "2"}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ReadFile(Path("twice")).ok());
}

TEST(CheckPathsTest, OneStdinOneStdoutOneResultAFile) {
  const std::string file = Path("once");
  EXPECT_TRUE(CheckPaths({{"A", "-"}, {"B", file}}, {{"--c", "-"}, {"--d", file}}).empty());
  const std::string again = absl::StrCat(testing::TempDir(), "/./once");
  const Diagnostics violations = CheckPaths(
      {{"A", "-"}, {"B", "-"}}, {{"--c", "-"}, {"--d", file}, {"--e", "-"}, {"--f", again}});
  ASSERT_EQ(violations.size(), 3);
  EXPECT_EQ(violations[0].text, "more than one input is stdin: A, B");
  EXPECT_EQ(violations[1].text, "more than one result goes to stdout: --c, --e");
  EXPECT_TRUE(absl::EndsWith(violations[2].text, "/once: --d, --f")) << violations[2].text;
}

TEST(CheckPathsTest, NoResultOverwritesAnInput) {
  ASSERT_TRUE(WriteFileAtomically(Path("input"), "x").ok());
  unlink(Path("hard").c_str());
  unlink(Path("soft").c_str());
  ASSERT_EQ(link(Path("input").c_str(), Path("hard").c_str()), 0);
  ASSERT_EQ(symlink(Path("input").c_str(), Path("soft").c_str()), 0);
  const std::string same = absl::StrCat(testing::TempDir(), "/./input");
  for (const std::string& result : {Path("input"), Path("hard"), Path("soft"), same}) {
    const Diagnostics violations =
        CheckPaths({{"--data", Path("input")}}, {{"the steps", "-"}, {"--metrics", result}});
    ASSERT_EQ(violations.size(), 1) << result;
    EXPECT_EQ(violations[0].text, absl::StrCat("--metrics would overwrite --data ", Path("input")));
  }
  const std::string none = Path("no such input");
  EXPECT_TRUE(CheckPaths({{"--data", none}}, {{"--metrics", none}}).empty());
}

TEST(CheckPathsTest, KnowsALinkToTheFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("target"), "x").ok());
  unlink(Path("link").c_str());
  ASSERT_EQ(symlink(Path("target").c_str(), Path("link").c_str()), 0);
  EXPECT_EQ(CheckPaths({}, {{"--a", Path("link")}, {"--b", Path("target")}}).size(), 1);
}

TEST(CheckWritableTest, TellsBeforeWriting) {
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "x").ok());
  for (const char* path : {"file", "new"}) EXPECT_TRUE(CheckWritable(Path(path)).ok());
  for (const char* path : {"-", "new", "/dev/null"}) EXPECT_TRUE(CheckWritable(path).ok());
  for (const char* path : {"", "missing/file", "file/x"}) {
    const absl::Status status = CheckWritable(Path(path));
    EXPECT_TRUE(absl::StartsWith(status.message(), "cannot write ")) << status;
  }
  EXPECT_FALSE(ReadFile(Path("new")).ok());
}

}  // namespace
}  // namespace mgc
