#include "tools/benchmarks/checkpoint_sides.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "runtime/train/checkpoints.h"
#include "tools/benchmarks/temporary_folder.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr int64_t kBlock = int64_t{1} << 20;
// Parameters and two moments.
constexpr int64_t kTensorsOfAParameter = 3;

class PlainWriting : public BenchSide {
 public:
  explicit PlainWriting(int64_t bytes) : bytes_(bytes), block_(static_cast<size_t>(kBlock), 'x') {
    std::error_code error;
    std::filesystem::create_directories(folder_.path(), error);
  }

  absl::StatusOr<StepTime> Step() override {
    const Stopwatch watch;
    MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file,
                         SharedFile::Create(folder_.path() + "/plain", bytes_));
    for (int64_t at = 0; at < bytes_; at += kBlock) {
      const absl::string_view block(block_.data(),
                                    static_cast<size_t>(std::min(kBlock, bytes_ - at)));
      MGC_RETURN_IF_ERROR(file->Write(at, block));
    }
    MGC_RETURN_IF_ERROR(file->Sync());
    MGC_RETURN_IF_ERROR(file->Publish());
    return watch.Read();
  }

 private:
  const TemporaryFolder folder_;
  const int64_t bytes_;
  const std::string block_;
};

class Saving : public BenchSide {
 public:
  Saving(CheckpointWork work, std::unique_ptr<TrainingSteps> steps)
      : work_(work), steps_(std::move(steps)) {
    options_.save_dir = folder_.path();
    options_.keep = 1;
  }

  absl::Status Open() {
    checkpoints_.emplace(options_, steps_->trainer(), [](const std::string&) {});
    return checkpoints_->Open();
  }

  absl::StatusOr<StepTime> Step() override {
    if (work_ == CheckpointWork::kStep) return steps_->Step();
    // Another step to save.
    MGC_RETURN_IF_ERROR(steps_->Step().status());
    checkpoints_->TakeStallNs();
    const Stopwatch watch;
    if (work_ == CheckpointWork::kSave) {
      MGC_RETURN_IF_ERROR(checkpoints_->Save(/*in_background=*/false));
      return watch.Read();
    }
    MGC_RETURN_IF_ERROR(checkpoints_->Save(/*in_background=*/true));
    MGC_RETURN_IF_ERROR(steps_->Step().status());
    MGC_RETURN_IF_ERROR(checkpoints_->Settle());
    StepTime time = watch.Read();
    time.seconds = static_cast<double>(checkpoints_->TakeStallNs()) / kNsPerSecond;
    return time;
  }

 private:
  const TemporaryFolder folder_;
  const CheckpointWork work_;
  const std::unique_ptr<TrainingSteps> steps_;
  CheckpointOptions options_;
  absl::optional<Checkpoints> checkpoints_;
};

int64_t ParametersOf(const Plan& plan) {
  int64_t parameters = 0;
  for (const GraphInput& input : plan.model.inputs()) {
    if (input.kind == InputKind::kParam) {
      parameters += NumElements(SizesOf(plan.model.type(input.value)));
    }
  }
  return parameters;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchSide>> CheckpointSide(CheckpointWork work,
                                                          const ModelConfig& config,
                                                          const ParallelConfig& parallel,
                                                          const Machine& machine, int workers) {
  if (work == CheckpointWork::kWrite) {
    MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(config, parallel, machine));
    return std::make_unique<PlainWriting>(kTensorsOfAParameter * ParametersOf(plan) *
                                          static_cast<int64_t>(sizeof(float)));
  }
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<TrainingSteps> steps,
                       TrainingSteps::Create(config, parallel, machine, workers));
  auto side = std::make_unique<Saving>(work, std::move(steps));
  MGC_RETURN_IF_ERROR(side->Open());
  return side;
}

}  // namespace mgc
