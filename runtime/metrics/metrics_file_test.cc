#include "runtime/metrics/metrics_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

class MetricsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(::testing::TempDir(), "/metrics_file_test.", getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }
  // A whole run of one line.
  static absl::StatusOr<std::string> Run(const std::string& path, absl::string_view line) {
    absl::StatusOr<MetricsFile> file = MetricsFile::Create(path);
    if (!file.ok()) return file.status();
    EXPECT_TRUE(file->Append(line).ok());
    return file->earlier();
  }

  std::string folder_;
};

TEST_F(MetricsFileTest, EveryLineIsThereAtOnce) {
  MetricsFile file = MetricsFile::Create(Path("m")).value();
  EXPECT_EQ(ReadFile(Path("m")).value(), "");
  EXPECT_EQ(file.earlier(), "");
  ASSERT_TRUE(file.Append("{1}").ok());
  EXPECT_EQ(ReadFile(Path("m")).value(), "{1}\n");
  MetricsFile moved = std::move(file);
  ASSERT_TRUE(moved.Append("{2}").ok());
  EXPECT_EQ(ReadFile(Path("m")).value(), "{1}\n{2}\n");
}

TEST_F(MetricsFileTest, OfALineThatFindsNoRoomNothingStays) {
  MetricsFile file = MetricsFile::Create(Path("m")).value();
  ASSERT_TRUE(file.Append("{1}").ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {6, before.rlim_max};  // two bytes of the next line
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = file.Append("{2}");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write"));
  EXPECT_EQ(ReadFile(Path("m")).value(), "{1}\n");
  ASSERT_TRUE(file.Append("{3}").ok());
  EXPECT_EQ(ReadFile(Path("m")).value(), "{1}\n{3}\n");
}

TEST_F(MetricsFileTest, KeepsEveryEarlierRun) {
  EXPECT_EQ(Run(Path("m"), "first").value(), "");
  EXPECT_THAT(Run(Path("m"), "second").value(), HasSubstr("/m.1"));
  EXPECT_THAT(Run(Path("m"), "third").value(), HasSubstr("/m.2"));
  EXPECT_EQ(ReadFile(Path("m.1")).value(), "first\n");
  EXPECT_EQ(ReadFile(Path("m.2")).value(), "second\n");
  EXPECT_EQ(ReadFile(Path("m")).value(), "third\n");
}

TEST_F(MetricsFileTest, AnEmptyFileIsNoEarlierRun) {
  EXPECT_EQ(MetricsFile::Create(Path("m")).value().earlier(), "");
  EXPECT_EQ(MetricsFile::Create(Path("m")).value().earlier(), "");
  EXPECT_FALSE(std::filesystem::exists(Path("m.1")));
}

TEST_F(MetricsFileTest, FollowsALink) {
  std::filesystem::create_symlink("real", Path("link"));
  EXPECT_EQ(Run(Path("link"), "first").value(), "");
  EXPECT_THAT(Run(Path("link"), "second").value(), HasSubstr("/real.1"));
  EXPECT_EQ(ReadFile(Path("real")).value(), "second\n");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
}

TEST_F(MetricsFileTest, OneRunAtATime) {
  {
    MetricsFile file = MetricsFile::Create(Path("m")).value();
    ASSERT_TRUE(file.Append("{1}").ok());
    const absl::Status second = MetricsFile::Create(Path("m")).status();
    EXPECT_TRUE(absl::IsUnavailable(second)) << second;
    EXPECT_THAT(second.message(), HasSubstr("another run is writing it"));
    EXPECT_EQ(ReadFile(Path("m")).value(), "{1}\n");
  }
  EXPECT_TRUE(MetricsFile::Create(Path("m")).ok());
}

TEST_F(MetricsFileTest, GoesOnBehindAStep) {
  const std::string one = "{\"step\":1,\"loss\":5}\n";
  const std::string evaluated = "{\"step\":2,\"eval_loss\":4}\n";
  const std::string three = "{\"step\":3,\"loss\":3}\n";
  const std::string all = absl::StrCat(one, "{\"step\":2,\"loss\":4}\n", evaluated, three);
  ASSERT_TRUE(WriteFileAtomically(Path("m"), absl::StrCat(all, "{\"step\":4,\"lo")).ok());
  EXPECT_EQ(MetricsFile::Continue(Path("m"), 3)->dropped(), 1);  // half a line
  EXPECT_EQ(ReadFile(Path("m")).value(), all);
  {
    MetricsFile file = MetricsFile::Continue(Path("m"), 2).value();
    EXPECT_EQ(file.dropped(), 1);
    EXPECT_EQ(file.earlier(), "");
    ASSERT_TRUE(file.Append("{\"step\":3,\"loss\":2}").ok());
    EXPECT_TRUE(absl::IsUnavailable(MetricsFile::Continue(Path("m"), 2).status()));
  }
  EXPECT_EQ(ReadFile(Path("m")).value(),
            absl::StrCat(one, "{\"step\":2,\"loss\":4}\n", evaluated, "{\"step\":3,\"loss\":2}\n"));
  EXPECT_EQ(MetricsFile::Continue(Path("m"), 9)->dropped(), 0);
  EXPECT_FALSE(std::filesystem::exists(Path("m.1")));
  EXPECT_EQ(MetricsFile::Continue(Path("new"), 9)->dropped(), 0);
}

TEST_F(MetricsFileTest, WhatIsNoMetricsIsKept) {
  int number = 0;
  for (const char* line : {"words", "[1]", "{\"loss\":1}", "{\"step\":1.5}"}) {
    const std::string text = absl::StrCat("{\"step\":1}\n", line, "\n");
    const std::string path = Path(absl::StrCat("m", ++number));
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_THAT(MetricsFile::Continue(path, 1)->earlier(), ::testing::EndsWith(".1"));
    EXPECT_EQ(ReadFile(path).value(), "");
    EXPECT_EQ(ReadFile(absl::StrCat(path, ".1")).value(), text);
  }
}

TEST_F(MetricsFileTest, ErrorsNameThePath) {
  EXPECT_THAT(MetricsFile::Create("/no/such\n").status().message(),
              HasSubstr("cannot write /no/such\\x0A"));
  EXPECT_TRUE(absl::IsResourceExhausted(MetricsFile::Create("/dev/full")->Append("{}")));
}

}  // namespace
}  // namespace mgc
