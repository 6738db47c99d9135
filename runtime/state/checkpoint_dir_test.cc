#include "runtime/state/checkpoint_dir.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StepNameTest, IsReadBackAndNothingElseIs) {
  EXPECT_EQ(StepName(100), "step-00000100");
  for (int64_t step : {int64_t{0}, int64_t{99999999}, int64_t{100000000}, int64_t{1} << 62}) {
    EXPECT_EQ(StepOfName(StepName(step)), step);
  }
  for (const char* name :
       {"", "step-", "step-1", "step-000000100", "step-0000010x", "step--0000001",
        "step-00000100.tmp-0", "xstep-00000100", "step-99999999999999999999"}) {
    EXPECT_EQ(StepOfName(name), absl::nullopt) << name;
  }
}

class CheckpointDirTest : public FolderTest {
 protected:
  std::string Run() const { return Path("run"); }
  std::unique_ptr<CheckpointDir> Open() const {
    auto dir = CheckpointDir::Open(Run());
    EXPECT_TRUE(dir.ok()) << dir.status();
    return *std::move(dir);
  }
  // A checkpoint with one file that tells it from others.
  static void Save(const CheckpointDir& dir, int64_t step, const std::string& mark = "") {
    const auto folder = dir.Begin(step);
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(*folder, "/mark"), mark).ok());
    Manifest manifest;
    manifest.state.step = step;
    const absl::Status published = dir.Publish(*folder, manifest);
    ASSERT_TRUE(published.ok()) << published;
  }
  std::vector<int64_t> Steps() const { return *ListSteps(Run()); }
  int CountTemporaries() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Run())) {
      count += entry.path().string().find(".tmp-") != std::string::npos ? 1 : 0;
    }
    return count;
  }
};

TEST_F(CheckpointDirTest, TheLastSavedComesFirstThenThoseBeforeIt) {
  EXPECT_THAT(Steps(), IsEmpty());  // no folder
  const auto dir = Open();
  EXPECT_THAT(Steps(), IsEmpty());
  for (int64_t step : {2, 10, 100}) Save(*dir, step);
  EXPECT_THAT(Steps(), ElementsAre(100, 10, 2));
  Save(*dir, 5);  // of a run that went back
  EXPECT_THAT(Steps(), ElementsAre(5, 2, 100, 10));
  EXPECT_EQ(*ReadFile(Run() + "/latest"), "step-00000005\n");
  EXPECT_EQ(ReadManifest(Run() + "/step-00000005")->state.step, 5);
  // What `latest` names may be gone, and it may hold anything.
  std::filesystem::remove_all(Run() + "/step-00000005");
  EXPECT_THAT(Steps(), ElementsAre(2, 100, 10));
  ASSERT_TRUE(WriteFileAtomically(Run() + "/latest", "../../x").ok());
  EXPECT_THAT(Steps(), ElementsAre(100, 10, 2));
  std::filesystem::remove(Run() + "/latest");
  EXPECT_THAT(Steps(), ElementsAre(100, 10, 2));
}

TEST_F(CheckpointDirTest, OfAStepThatIsThereTheNewOneTakesItsPlace) {
  const auto dir = Open();
  Save(*dir, 3, "old");
  Save(*dir, 3, "new");
  EXPECT_EQ(*ReadFile(Run() + "/step-00000003/mark"), "new");
  EXPECT_EQ(CountTemporaries(), 0);
}

TEST_F(CheckpointDirTest, WhatKilledRunsLeftIsNoneAndGoes) {
  Save(*Open(), 1);
  for (const char* name : {"step-00000002.tmp-0123456789abcdef", "step-00000003", "mine.tmp-x"}) {
    std::filesystem::create_directory(absl::StrCat(Run(), "/", name));
  }
  ASSERT_TRUE(
      WriteFileAtomically(Run() + "/step-00000002.tmp-0123456789abcdef/manifest.json", "x").ok());
  EXPECT_THAT(Steps(), ElementsAre(1));
  const auto dir = Open();
  EXPECT_EQ(CountTemporaries(), 1);  // what is not ours stays
  EXPECT_TRUE(std::filesystem::exists(Run() + "/step-00000003"));
  Save(*dir, 3);
  EXPECT_THAT(Steps(), ElementsAre(3, 1));
}

TEST_F(CheckpointDirTest, PruningLeavesTheLastAndThoseBehind) {
  const auto dir = Open();
  for (int64_t step : {1, 2, 3, 9}) Save(*dir, step);
  Save(*dir, 4);
  ASSERT_TRUE(dir->Prune(4, 2).ok());
  EXPECT_THAT(Steps(), ElementsAre(4, 3, 9));
  ASSERT_TRUE(dir->Prune(4, 2).ok());
  EXPECT_THAT(Steps(), ElementsAre(4, 3, 9));
  ASSERT_TRUE(dir->Prune(9, 1).ok());
  EXPECT_THAT(Steps(), ElementsAre(9));
  EXPECT_EQ(CountTemporaries(), 0);
}

TEST_F(CheckpointDirTest, OneRunAtATime) {
  auto dir = Open();
  const absl::Status second = CheckpointDir::Open(Run()).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("process ", getpid(), " of ")));
  dir.reset();
  EXPECT_TRUE(CheckpointDir::Open(Run()).ok());
}

TEST_F(CheckpointDirTest, WhereNothingCanBeWrittenThatIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "x").ok());
  for (const std::string& path : {Path("file"), Path("file") + "/in", std::string("a\0b", 3)}) {
    EXPECT_FALSE(CheckpointDir::Open(path).ok());
  }
  Save(*Open(), 1);
  if (getuid() == 0) GTEST_SKIP() << "root may write anywhere";
  chmod(Run().c_str(), 0555);
  EXPECT_EQ(CheckpointDir::Open(Run()).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Steps(), ElementsAre(1));
  chmod(Run().c_str(), 0755);
}

}  // namespace
}  // namespace mgc
