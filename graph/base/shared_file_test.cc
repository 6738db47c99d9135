#include "graph/base/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

class SharedFileTest : public FolderTest {};

TEST_F(SharedFileTest, ManyWritersMakeOneFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  constexpr int kWriters = 4;
  constexpr int64_t kBytes = 1000;
  const auto made = SharedFile::Create(Path("a"), kWriters * kBytes);
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      const auto opened = SharedFile::Open((*made)->temporary(), Path("a"));
      ASSERT_TRUE(opened.ok()) << opened.status();
      for (int64_t at = 0; at < kBytes; at += 100) {
        const std::string text(100, static_cast<char>('a' + writer));
        EXPECT_TRUE((*opened)->Write(writer * kBytes + at, text).ok());
      }
      EXPECT_TRUE((*opened)->Sync().ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  ASSERT_TRUE((*made)->Publish().ok());
  std::string expected;
  for (int writer = 0; writer < kWriters; ++writer) {
    expected.append(kBytes, static_cast<char>('a' + writer));
  }
  EXPECT_EQ(ReadFile(Path("a")).value(), expected);
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(SharedFileTest, IsRemovedUnlessItIsPublished) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  {
    const auto made = SharedFile::Create(Path("a"), 10);
    ASSERT_TRUE(made.ok()) << made.status();
    const auto opened = SharedFile::Open((*made)->temporary(), Path("a"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    // A writer that is done with it leaves it there.
    EXPECT_EQ(CountFiles(), 2);
    // Nor does a writer of another file take it for a leftover.
    ASSERT_TRUE(WriteFileAtomically(Path("b"), "x").ok());
    EXPECT_EQ(CountFiles(), 3);
  }
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(CountFiles(), 2);
}

TEST_F(SharedFileTest, KeepsPermissionsAndFollowsLinks) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  ASSERT_EQ(chmod(Path("a").c_str(), 0440), 0);
  std::filesystem::create_symlink("a", Path("link"));
  const auto made = SharedFile::Create(Path("link"), 3);
  ASSERT_TRUE(made.ok()) << made.status();
  struct stat info;
  ASSERT_EQ(stat((*made)->temporary().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  ASSERT_TRUE((*made)->Write(0, "new").ok());
  ASSERT_TRUE((*made)->Publish().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("a")).value(), "new");
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0440u);
}

TEST_F(SharedFileTest, IsCopiedIntoAPipe) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string text(3000000, 't');
  std::thread writer([&] {
    const auto made = SharedFile::Create(Path("pipe"), static_cast<int64_t>(text.size()) + 1);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->temporary(), "");
    EXPECT_TRUE((*made)->Write(1, text).ok());
    EXPECT_TRUE((*made)->Write(0, "h").ok());
    EXPECT_TRUE((*made)->Sync().ok());
    EXPECT_TRUE((*made)->Publish().ok());
  });
  const auto content = ReadFile(Path("pipe"));
  writer.join();
  EXPECT_EQ(content.value(), "h" + text);
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(SharedFileTest, ErrorsNameThePath) {
  EXPECT_THAT(SharedFile::Create(folder(), 1).status().message(), HasSubstr("directory"));
  EXPECT_TRUE(absl::IsNotFound(SharedFile::Create(Path("no/such"), 1).status()));
  EXPECT_THAT(SharedFile::Open(Path("gone"), Path("a")).status().message(), HasSubstr("/a"));
  const auto full = SharedFile::Create("/dev/full", 1);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_TRUE(absl::IsResourceExhausted((*full)->Publish()));
  EXPECT_EQ(CountFiles(), 0);
}

}  // namespace
}  // namespace mgc
