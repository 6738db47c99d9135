#include "tools/benchmarks/calibrate_gpu.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/benchmarks/calibrate.h"
#include "tools/benchmarks/comparison.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr int64_t kStepsOfRound = 3;
constexpr int64_t kStepsBefore = 2;  // of which one is issued and one captured
constexpr int64_t kTinySequences = 2;
constexpr int64_t kMicroBatches = 8;      // of a replayed step, whose own cost they share
constexpr int64_t kGroups[] = {2, 4, 8};  // GPUs that sum within layers

// What a replayed step took.
struct ReplaySpec {
  ModelConfig model;
  ParallelConfig parallel;
  std::vector<double> seconds = {};
};

class GpuCalibration {
 public:
  GpuCalibration(const GpuCalibrationSetting& setting, const RunDevice& device, const Machine& like)
      : setting_(setting), device_(device), like_(like) {}

  absl::StatusOr<Machine> Run() {
    AddSteps();
    for (int64_t round = 0; round < setting_.rounds; ++round) {
      for (TimedStepSpec& step : steps_) MGC_RETURN_IF_ERROR(TimeOnce(&step));
      for (TimedStepSpec& step : small_) MGC_RETURN_IF_ERROR(TimeOnce(&step));
      for (TimedStepSpec& step : sums_) MGC_RETURN_IF_ERROR(TimeOnce(&step));
      for (ReplaySpec& step : replays_) MGC_RETURN_IF_ERROR(ReplayOnce(&step));
    }
    std::vector<OpTime> times;
    for (const TimedStepSpec& step : steps_) MGC_RETURN_IF_ERROR(Add(step, &times));
    std::vector<ReplayedStep> replayed;
    for (size_t s = 0; s < small_.size(); ++s) {
      ReplayedStep& step = replayed.emplace_back();
      step.seconds = Median(replays_[s].seconds);
      MGC_RETURN_IF_ERROR(Add(small_[s], &step.times));
      times.insert(times.end(), step.times.begin(), step.times.end());
    }
    const double wait = WaitOf(times);
    Machine fitted = FitMachine(AsReplayed(times, wait, OverheadOf(replayed, wait)), like_);
    fitted.name = "calibrated";
    fitted.memory = setting_.gpus.memory;
    MGC_ASSIGN_OR_RETURN(fitted.tiers, TiersWithout(wait));
    MGC_RETURN_IF_ERROR(CheckMachine(fitted));
    return fitted;
  }

 private:
  void AddSteps() {
    const int64_t length = setting_.seq_length;
    for (const DType type : setting_.types) {
      steps_.push_back({setting_.gpt2, Copies(1, setting_.sequences, length, type)});
      steps_.push_back({setting_.llama, Copies(1, setting_.sequences, length, type)});
      steps_.push_back({setting_.gpt2, Copies(1, 1, length, type)});
      steps_.push_back({setting_.llama, Copies(1, 1, length / 4, type)});
      ParallelConfig several = Copies(1, kTinySequences, setting_.tiny_length, type);
      several.global_batch_size *= kMicroBatches;
      small_.push_back({setting_.tiny, several});
      replays_.push_back({setting_.tiny, several});
    }
    for (const int64_t group : kGroups) {
      if (group > setting_.gpus.count) break;
      const auto sum = [&](const ModelConfig& model, int64_t sequences, int64_t seq_length) {
        sums_.push_back(
            {LayersFor(model, group), Group(group, sequences, seq_length), TraceKind::kCollective});
      };
      sum(setting_.gpt2, setting_.sequences, length);
      sum(setting_.gpt2, 1, length);
      sum(setting_.tiny, 1, setting_.tiny_length);
    }
  }

  // A GPU that has been idle runs slower for a while.
  absl::Status WarmUp(TrainingSteps* steps) const {
    double seconds = 0;
    for (int64_t i = 0; i < kStepsBefore || seconds < setting_.warm_up_seconds; ++i) {
      MGC_ASSIGN_OR_RETURN(const StepTime time, steps->Step());
      seconds += time.seconds;
    }
    return absl::OkStatus();
  }

  absl::Status TimeOnce(TimedStepSpec* step) const {
    MGC_ASSIGN_OR_RETURN(
        const std::unique_ptr<TrainingSteps> steps,
        TrainingSteps::CreateOn(device_, true, step->model, step->parallel, like_));
    MGC_RETURN_IF_ERROR(WarmUp(steps.get()));
    for (int64_t i = 0; i < kStepsOfRound; ++i) {
      MGC_RETURN_IF_ERROR(steps->Step().status());
      KeepLastStep(*steps, step);
    }
    return absl::OkStatus();
  }

  absl::Status ReplayOnce(ReplaySpec* step) const {
    MGC_ASSIGN_OR_RETURN(
        const std::unique_ptr<TrainingSteps> steps,
        TrainingSteps::CreateOn(device_, false, step->model, step->parallel, like_));
    MGC_RETURN_IF_ERROR(WarmUp(steps.get()));
    for (int64_t i = 0; i < kStepsOfRound; ++i) {
      MGC_ASSIGN_OR_RETURN(const StepTime time, steps->Step());
      step->seconds.push_back(time.seconds);
    }
    return absl::OkStatus();
  }

  absl::Status Add(const TimedStepSpec& step, std::vector<OpTime>* times) const {
    MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(step.model, step.parallel, like_));
    AddTimes(plan, step, /*part=*/1, times);
    return absl::OkStatus();
  }

  // The innermost one as it was measured, if it was.
  absl::StatusOr<std::vector<NetworkTier>> TiersWithout(double wait) const {
    std::vector<MessageTime> messages;
    for (const TimedStepSpec& step : sums_) {
      MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(step.model, step.parallel, like_));
      AddMessages(
          plan, step, [](int64_t) { return 1; }, &messages);
    }
    for (MessageTime& time : messages) time.seconds = std::max(time.seconds - wait, 0.0);
    std::vector<NetworkTier> tiers = like_.tiers;
    if (!messages.empty()) tiers[0] = FitTier(messages, tiers[0]);
    return tiers;
  }

  const GpuCalibrationSetting& setting_;
  const RunDevice& device_;
  const Machine& like_;  // for which plans are made meanwhile
  std::vector<TimedStepSpec> steps_, small_, sums_;
  std::vector<ReplaySpec> replays_;  // of the small ones
};

}  // namespace

double WaitOf(const std::vector<OpTime>& times) {
  std::vector<double> seconds;
  for (const OpTime& time : times) {
    if (IsSmall(time)) seconds.push_back(time.seconds);
  }
  return seconds.empty() ? 0 : Median(std::move(seconds));
}

double OverheadOf(const std::vector<ReplayedStep>& steps, double wait) {
  std::vector<double> overheads;
  for (const ReplayedStep& step : steps) {
    double left = step.seconds;
    for (const OpTime& time : step.times) left -= std::max(time.seconds - wait, 0.0);
    const double count = static_cast<double>(std::max<size_t>(step.times.size(), 1));
    overheads.push_back(std::max(left, 0.0) / count);
  }
  return Median(std::move(overheads));
}

std::vector<OpTime> AsReplayed(std::vector<OpTime> times, double wait, double overhead) {
  for (OpTime& time : times) time.seconds = std::max(time.seconds - wait, 0.0) + overhead;
  return times;
}

absl::StatusOr<GpuCalibrationSetting> DefaultGpuCalibration(const Gpus& gpus) {
  constexpr int64_t kLayers = 2, kWidth = 2048, kHeads = 16, kKvHeads = 4, kHidden = 5632;
  constexpr int64_t kVocabMultiple = 128;
  GpuCalibrationSetting setting;
  MGC_ASSIGN_OR_RETURN(setting.gpt2, LoadModelPreset("gpt2-124m"));
  MGC_ASSIGN_OR_RETURN(setting.llama, LoadModelPreset("llama-tiny"));
  MGC_ASSIGN_OR_RETURN(setting.tiny, LoadModelPreset("gpt2-tiny"));
  // As it is trained: rows of other numbers of words are not aligned, and their products slow.
  setting.gpt2.vocab = (setting.gpt2.vocab + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
  setting.gpt2.layers = setting.llama.layers = kLayers;
  setting.llama.max_positions = setting.gpt2.max_positions;
  setting.llama.hidden = kWidth;
  setting.llama.heads = kHeads;
  setting.llama.kv_heads = kKvHeads;
  setting.llama.head_dim = kWidth / kHeads;
  setting.llama.ffn = kHidden;
  setting.gpus = gpus;
  return setting;
}

absl::StatusOr<Machine> CalibrateGpu(const GpuCalibrationSetting& setting, const RunDevice& device,
                                     const Machine& like, std::vector<std::string>* notes) {
  if (like.host != KernelHost::kGpu) {
    return absl::InvalidArgumentError(absl::StrCat(
        "machine ", like.name,
        " is none of GPUs; nearest legal: --cluster h100x8, or another preset of GPUs"));
  }
  if (setting.gpus.count < kGroups[0]) {
    notes->push_back(absl::StrCat("there is one GPU: all networks are those of ", like.name));
  } else if (like.tiers.size() > 1) {
    notes->push_back(absl::StrCat("networks beyond this machine's are those of ", like.name));
  }
  return GpuCalibration(setting, device, like).Run();
}

}  // namespace mgc
