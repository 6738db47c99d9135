#include "graph/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

class FileTest : public FolderTest {};

TEST(EscapeBytes, ShowsEveryByteUnambiguously) {
  EXPECT_EQ(EscapeBytes("plan.mgc \"x\""), "plan.mgc \"x\"");
  EXPECT_EQ(EscapeBytes("a\\x41"), "a\\\\x41");
  EXPECT_EQ(EscapeBytes(std::string("\0\n\x1b[31m\x7f\xc3\xa9", 10)),
            "\\x00\\x0A\\x1B[31m\\x7F\\xC3\\xA9");
}

TEST_F(FileTest, WrittenBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 3000000; ++i) bytes += static_cast<char>(i * 7 + i / 256);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), bytes).ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), bytes);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), {"one", "", "two"}).ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "onetwo");
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(FileTest, ReadErrorsNameThePathEscaped) {
  auto missing = ReadFile(Path("no\nsuch"));
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(missing.status().message(), HasSubstr("/no\\x0Asuch: "));
  auto directory = ReadFile(folder());
  EXPECT_TRUE(absl::IsFailedPrecondition(directory.status()));
  EXPECT_THAT(directory.status().message(), HasSubstr("it is a directory"));
  EXPECT_THAT(ReadFile("/dev/zero").status().message(), HasSubstr("it is a device"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFile(std::string("a\0b", 3)).status()));
}

TEST_F(FileTest, ReadStopsAtTheLimit) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), std::string(100, 'x')).ok());
  EXPECT_TRUE(ReadFile(Path("a"), 100).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFile(Path("a"), 99).status()));
}

// The same pieces whatever the system gives at a time.
TEST_F(FileTest, ReadsInPieces) {
  std::string bytes((size_t{2} << 20) + 7, 'x');
  for (size_t i = 0; i < bytes.size(); i += 1000) bytes[i] = static_cast<char>(i / 1000);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), bytes).ok());
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(Path("pipe")) << bytes; });
  for (const std::string& path : {Path("a"), Path("pipe")}) {
    std::vector<std::string> pieces;
    const auto take = [&](absl::string_view piece) {
      pieces.emplace_back(piece);
      return absl::OkStatus();
    };
    ASSERT_TRUE(ReadPieces(path, take).ok());
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(pieces[0].size(), size_t{1} << 20);
    EXPECT_EQ(pieces[2].size(), 7U);
    EXPECT_EQ(pieces[0] + pieces[1] + pieces[2], bytes);
  }
  writer.join();
  int taken = 0;
  const auto refuse = [&taken](absl::string_view) {
    ++taken;
    return absl::CancelledError("enough");
  };
  EXPECT_TRUE(absl::IsCancelled(ReadPieces(Path("a"), refuse)));
  EXPECT_EQ(taken, 1);
  EXPECT_TRUE(absl::IsNotFound(ReadPieces(Path("none"), refuse)));
}

TEST_F(FileTest, ReadsAPipe) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::thread writer([this] { EXPECT_TRUE(WriteFileAtomically(Path("pipe"), "through").ok()); });
  auto content = ReadFile(Path("pipe"));
  writer.join();
  EXPECT_EQ(content.value(), "through");
}

TEST_F(FileTest, WriteRefusesDirectoriesAndMissingParents) {
  EXPECT_THAT(WriteFileAtomically(folder(), "x").message(), HasSubstr("directory"));
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically(Path("no/such"), "x")));
  EXPECT_FALSE(WriteFileAtomically("", "x").ok());
  EXPECT_FALSE(WriteFileAtomically(Path(std::string(300, 'n')), "x").ok());
  EXPECT_EQ(CountFiles(), 0);
}

TEST_F(FileTest, FailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  absl::Status status = WriteFileAtomically(Path("a"), std::string(5000, 'n'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(FileTest, LeftoversOfKilledWritersAreRemoved) {
  ASSERT_TRUE(WriteFileAtomically(Path("kept.mgc-tmp-1-0"), "a user's").ok());
  const std::string dead = Path(".mgc-tmp-1-0");
  const std::string alive = Path(".mgc-tmp-1-1");
  for (const std::string& name : {dead, alive}) std::ofstream(name) << "half of a pla";
  const int writer = open(alive.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "x").ok());
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(alive));
  EXPECT_EQ(CountFiles(), 3);
  close(writer);
}

TEST_F(FileTest, WritersOfOneDirectoryDoNotRemoveEachOthersFiles) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < 50; ++i) {
        const absl::Status status = WriteFileAtomically(Path(absl::StrCat("w", writer)), "x");
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(CountFiles(), 4);
}

TEST_F(FileTest, DevicesAreWrittenNotReplaced) {
  EXPECT_TRUE(WriteFileAtomically("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(absl::IsResourceExhausted(WriteFileAtomically("/dev/full", "x")));
}

TEST_F(FileTest, KeepsPermissionsAndFollowsLinks) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  ASSERT_EQ(chmod(Path("a").c_str(), 0600), 0);
  std::filesystem::create_symlink("a", Path("link"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("a")).value(), "new");
  struct stat info;
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace mgc
