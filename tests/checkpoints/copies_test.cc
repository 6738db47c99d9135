// Checkpoints that are written from a copy: steps go on meanwhile, and it is the same checkpoint.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/state/parameters.h"
#include "runtime/train/checkpoints.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace {

std::atomic<bool> disk_stands{false};  // what is to be written waits; of this process

}  // namespace

// Takes the place of the C library's.
extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  while (disk_stands) std::this_thread::sleep_for(std::chrono::microseconds(100));
  const auto next =
      reinterpret_cast<ssize_t (*)(int, const void*, size_t, off_t)>(dlsym(RTLD_NEXT, "pwrite"));
  return next(file, bytes, count, offset);
}

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CopiesTest : public FolderTest {
 protected:
  CopiesTest() : case_(WithZero(GptCase(2, 1, 2), 1)), plan_(*CompileCase(case_)) {
    auto trainer = Trainer::Create(plan_, OptionsFor(plan_, case_, 9, /*workers=*/2, kernels_));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    trainer_ = *std::move(trainer);
    options_.save_dir = Path("run");
    options_.copies = true;
  }

  void Open() {
    checkpoints_ = std::make_unique<Checkpoints>(
        options_, *trainer_, [this](const std::string& note) { notes_.push_back(note); });
    const absl::Status opened = checkpoints_->Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  double Step() {
    const auto record = trainer_->Step();
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? record->loss : NAN;
  }

  // What a checkpoint of this step holds, by the names of its files.
  static std::vector<std::string> Files(const std::string& dir, int64_t step) {
    std::vector<std::string> files;
    for (const char* name : {"manifest.json", "parameters.safetensors", "first_moments.safetensors",
                             "second_moments.safetensors"}) {
      const auto bytes = ReadFile(absl::StrCat(dir, "/", StepName(step), "/", name));
      EXPECT_TRUE(bytes.ok()) << bytes.status();
      files.push_back(bytes.value_or(""));
    }
    return files;
  }

  // The same of one that was written while nothing was computed.
  std::vector<std::string> Expected(int64_t step) const {
    auto trainer = Trainer::Create(plan_, OptionsFor(plan_, case_, 9, /*workers=*/2, kernels_));
    const auto dir = CheckpointDir::Open(Path("expected"));
    for (int64_t i = 0; i < step; ++i) EXPECT_TRUE((*trainer)->Step().ok());
    const auto saved = (*trainer)->Save(dir->get(), options_.version);
    EXPECT_TRUE(saved.ok()) << saved.status();
    return Files(Path("expected"), step);
  }

  const TrainCase case_;
  const Plan plan_;
  const std::vector<KernelEntry> kernels_ = CpuKernels();
  std::unique_ptr<Trainer> trainer_;
  CheckpointOptions options_;
  std::vector<std::string> notes_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

TEST_F(CopiesTest, StepsGoOnWhileTheDiskStands) {
  Open();
  Step();
  disk_stands = true;
  ASSERT_TRUE(checkpoints_->Save(/*in_background=*/true).ok());
  double last = INFINITY;
  for (int i = 0; i < 3; ++i) {
    const double loss = Step();
    EXPECT_LT(loss, last) << "no update";
    last = loss;
    EXPECT_TRUE(checkpoints_->SettleWritten().ok());
  }
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(Path("run"), "/latest")));
  disk_stands = false;
  ASSERT_TRUE(checkpoints_->Settle().ok());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("run/step-00000001")));
  EXPECT_EQ(Files(Path("run"), 1), Expected(1));
}

TEST_F(CopiesTest, TheNextSaveWaitsForTheOneBefore) {
  Open();
  Step();
  disk_stands = true;
  ASSERT_TRUE(checkpoints_->Save(/*in_background=*/true).ok());
  Step();
  std::thread disk([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    disk_stands = false;
  });
  ASSERT_TRUE(checkpoints_->Save(/*in_background=*/true).ok());
  EXPECT_FALSE(disk_stands);
  disk.join();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("run/step-00000001")));
  Step();
  ASSERT_TRUE(checkpoints_->Settle().ok());
  EXPECT_EQ(Files(Path("run"), 2), Expected(2));
}

TEST_F(CopiesTest, WithoutRoomUpdatesWait) {
  options_.host = [] {
    Host host;
    host.free_bytes = 1000;
    return host;
  };
  Open();
  for (int step = 1; step <= 2; ++step) {
    Step();
    ASSERT_TRUE(checkpoints_->Save(/*in_background=*/true).ok());
    Step();  // ends when it is written
    EXPECT_TRUE(checkpoints_->SettleWritten().ok());
  }
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("written without a copy: the ranks of this host need"),
                                  HasSubstr("step-00000001"), HasSubstr("step-00000003")));
  EXPECT_EQ(Files(Path("run"), 3), Expected(3));
}

TEST_F(CopiesTest, WhatIsNotFiniteIsNoCheckpoint) {
  Open();
  Step();
  const HeldTensor tensor = HeldTensors(plan_, TensorRole::kParam)->front();
  trainer_->executor().Put(0, tensor.address, sizeof(float), [](char* to) {
    const float nan = NAN;
    std::copy_n(reinterpret_cast<const char*>(&nan), sizeof(nan), to);
  });
  ASSERT_TRUE(checkpoints_->Save(/*in_background=*/true).ok());
  EXPECT_TRUE(trainer_->Step().ok());
  const absl::Status saved = checkpoints_->Settle();
  EXPECT_TRUE(absl::IsOutOfRange(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr(tensor.name));
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(Path("run"), "/latest")));
}

}  // namespace
}  // namespace mgc
