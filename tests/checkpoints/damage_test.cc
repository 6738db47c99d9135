// Files that are not what was written are found, and named with the tensor; what is whole is taken.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/state/checkpoint.h"
#include "runtime/train/checkpoints.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DamageTest : public FolderTest {
 protected:
  DamageTest() : case_(GptCase(2, 1, 1)), plan_(*CompileCase(case_)) {}

  std::unique_ptr<Trainer> NewTrainer() const {
    auto trainer = Trainer::Create(plan_, OptionsFor(plan_, case_, 4, 2, kernels_));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return *std::move(trainer);
  }

  // Saves steps 1 and 2.
  void SaveTwo() const {
    const auto trainer = NewTrainer();
    CheckpointOptions options;
    options.save_dir = Path("run");
    Checkpoints checkpoints(options, *trainer, [](const std::string&) {});
    ASSERT_TRUE(checkpoints.Open().ok());
    for (int step = 1; step <= 2; ++step) {
      ASSERT_TRUE(trainer->Step().ok());
      ASSERT_TRUE(checkpoints.Save(/*in_background=*/false).ok());
    }
  }

  // Goes on from what is there: the step, and what is said.
  struct Found {
    int64_t step = -1;
    absl::Status status;
    std::vector<std::string> notes;
  };
  Found GoOn(CheckpointOptions options) const {
    const auto trainer = NewTrainer();
    Found found;
    if (options.load_dir.empty()) options.save_dir = Path("run");
    Checkpoints checkpoints(options, *trainer,
                            [&](const std::string& note) { found.notes.push_back(note); });
    found.status = checkpoints.Open();
    found.step = trainer->steps_done();
    return found;
  }

  std::string File(int step, const std::string& name) const {
    return absl::StrCat(Path("run"), "/", StepName(step), "/", name);
  }
  static void Overwrite(const std::string& path, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }

  const TrainCase case_;
  const Plan plan_;
  const std::vector<KernelEntry> kernels_ = CpuKernels();
};

TEST_F(DamageTest, AFlippedBitIsFoundInItsFileAndTensorAndTheStepBeforeTaken) {
  SaveTwo();
  const std::string path = File(2, "first_moments.safetensors");
  const std::string whole = *ReadFile(path);
  const Manifest manifest = *ReadManifest(absl::StrCat(Path("run"), "/", StepName(2)));
  const StoredTensor& tensor = manifest.files[1].tensors[3];
  std::string flipped = whole;
  flipped[static_cast<size_t>(tensor.offset) + 5] ^= 0x10;
  Overwrite(path, flipped);
  const Found found = GoOn({});
  EXPECT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.step, 1);
  ASSERT_GE(found.notes.size(), 2u);
  EXPECT_THAT(found.notes[0], AllOf(HasSubstr(absl::StrCat("first_moments.safetensors: tensor ",
                                                           tensor.name, " is damaged")),
                                    HasSubstr("step 2 is passed over")));
  // Of a step that was asked for there is no other.
  CheckpointOptions second;
  second.at_step = 2;
  EXPECT_EQ(GoOn(second).status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(VerifyCheckpoint(absl::StrCat(Path("run"), "/", StepName(2))).status().message(),
              HasSubstr(tensor.name));
  EXPECT_TRUE(VerifyCheckpoint(absl::StrCat(Path("run"), "/", StepName(1))).ok());
}

// Every byte of a file counts: of its header and of each tensor.
TEST_F(DamageTest, AnyBitOfAnyFileCounts) {
  SaveTwo();
  const std::string folder = absl::StrCat(Path("run"), "/", StepName(2));
  for (const char* name : {"parameters.safetensors", "manifest.json"}) {
    const std::string path = File(2, name);
    const std::string whole = *ReadFile(path);
    for (size_t i = 0; i < 60; ++i) {
      std::string flipped = whole;
      flipped[i * (whole.size() - 1) / 59] ^= static_cast<char>(1 << i % 8);
      Overwrite(path, flipped);
      EXPECT_EQ(VerifyCheckpoint(folder).status().code(), absl::StatusCode::kDataLoss)
          << name << ", byte " << i * (whole.size() - 1) / 59;
    }
    Overwrite(path, whole);
    EXPECT_TRUE(VerifyCheckpoint(folder).ok());
  }
}

TEST_F(DamageTest, WhatIsCutOffIsPassedOver) {
  SaveTwo();
  for (const char* name : {"second_moments.safetensors", "manifest.json"}) {
    const std::string path = File(2, name);
    const std::string whole = *ReadFile(path);
    for (size_t size : {size_t{0}, size_t{7}, whole.size() / 2, whole.size() - 1}) {
      Overwrite(path, whole.substr(0, size));
      const Found found = GoOn({});
      EXPECT_TRUE(found.status.ok()) << found.status;
      EXPECT_EQ(found.step, 1) << name << " of " << size << " bytes";
      EXPECT_THAT(found.notes[0], HasSubstr(name));
    }
    Overwrite(path, whole);
  }
  std::filesystem::remove(File(2, "parameters.safetensors"));
  EXPECT_EQ(GoOn({}).step, 1);
  std::filesystem::remove(File(2, "manifest.json"));
  const Found found = GoOn({});
  EXPECT_EQ(found.step, 1);
  EXPECT_EQ(found.notes.size(), 1u);  // a folder without one is none
}

TEST_F(DamageTest, WithoutAnyWholeOneNothingBegins) {
  SaveTwo();
  for (int step : {1, 2}) Overwrite(File(step, "manifest.json"), "{}");
  EXPECT_EQ(GoOn({}).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(DamageTest, AnotherModelIsRefusedWithAllThatDiffers) {
  SaveTwo();
  TrainCase other = GptCase(1, 1, 1);
  other.vocab = 300;
  other.layers = 1;
  const Plan plan = *CompileCase(other);
  auto trainer = Trainer::Create(plan, OptionsFor(plan, other, 4, 2, kernels_));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const auto resumed = (*trainer)->Resume(absl::StrCat(Path("run"), "/", StepName(2)));
  EXPECT_EQ(resumed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(resumed.status().message(),
              AllOf(HasSubstr("embedding.word has shape [257,64], the plan's [300,64]"),
                    HasSubstr("layers.1.attention.k is none of the plan's")));
}

TEST_F(DamageTest, ChangedOptionsAndDataAreListed) {
  SaveTwo();
  TrainOptions options = OptionsFor(plan_, case_, 4, 2, kernels_);
  options.lr.max_lr = 4e-3;
  options.eval_tail_samples = 1;
  auto trainer = Trainer::Create(plan_, options);
  const auto resumed = (*trainer)->Resume(absl::StrCat(Path("run"), "/", StepName(2)));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_THAT(resumed->changes, ElementsAre("option lr was 0.003, is 0.004",
                                            ::testing::StartsWith("data text was ")));
}

TEST_F(DamageTest, WhatIsNotThereIsSaid) {
  CheckpointOptions options;
  options.load_dir = Path("none");
  EXPECT_EQ(GoOn(options).status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GoOn({}).step, 0);  // where a run saves there need not be one
  SaveTwo();
  options.load_dir = Path("run");
  options.at_step = 7;
  EXPECT_THAT(GoOn(options).status.message(), HasSubstr("there is one of step 2, 1"));
}

}  // namespace
}  // namespace mgc
