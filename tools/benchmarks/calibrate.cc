#include "tools/benchmarks/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "passes/config/parallel_config.h"
#include "passes/plan/time/cost.h"
#include "runtime/run/host.h"
#include "tools/benchmarks/comparison.h"
#include "tools/benchmarks/timed_step.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr char kStream[] = "adamw";    // reads and writes the longest tensors in order
constexpr char kProduct[] = "matmul";  // and nothing beside
constexpr double kSmallBytes = 4096;   // what takes no longer than to start it
constexpr double kSmallFlops = 1e5;
constexpr double kBinBase = 4;  // work of a size: between two powers of this
constexpr int64_t kStepsOfRound = 3;
constexpr int64_t kMostRanks = 4;  // copies of a large model need memory
constexpr int64_t kTinySequences = 2;
constexpr int64_t kTinyLength = 32;
constexpr int64_t kVector = 16;           // elements that kernels take at once
constexpr int64_t kGroups[] = {2, 4, 8};  // ranks that sum within layers

// Three digits are more than a measurement is good for.
double Rounded(double value) { return std::stod(absl::StrFormat("%.3g", value)); }

// What work of one size took.
struct Bin {
  double size = 0, seconds = 0, count = 0;

  void Add(double work, double took) {
    size += work;
    seconds += took;
    ++count;
  }
  double rate() const { return size / seconds; }
};
using Bins = std::map<int, Bin>;

int BinOf(double size) { return static_cast<int>(std::log(size) / std::log(kBinBase)); }

double HighestRate(const Bins& bins) {
  double highest = 0;
  for (const auto& [size, bin] : bins) highest = std::max(highest, bin.rate());
  return Rounded(highest);
}

// By size, the share of the highest rate.
std::vector<EfficiencyPoint> PointsOf(const Bins& bins) {
  std::vector<EfficiencyPoint> points;
  points.reserve(bins.size());
  for (const auto& [size, bin] : bins) {
    const double share = bin.rate() / HighestRate(bins);
    points.push_back({Rounded(bin.size / bin.count), std::min(Rounded(share), 1.0)});
  }
  return points;
}

class Fit {
 public:
  Fit(const std::vector<OpTime>& times, const Machine& like) : times_(times), machine_(like) {}

  Machine Run() && {
    FitOverhead();
    FitBandwidth();
    FitRates();
    FitFactors();
    return std::move(machine_);
  }

 private:
  double Net(const OpTime& time) const {
    return std::max(time.seconds - machine_.op_overhead, 0.0);
  }

  void FitOverhead() {
    std::vector<double> seconds;
    for (const OpTime& time : times_) {
      if (IsSmall(time)) seconds.push_back(time.seconds);
    }
    machine_.op_overhead = seconds.empty() ? 0 : Rounded(Median(std::move(seconds)));
  }

  void FitBandwidth() {
    double bytes = 0, seconds = 0;
    for (const OpTime& time : times_) {
      if (time.op != kStream || IsSmall(time)) continue;
      bytes += time.bytes;
      seconds += Net(time);
    }
    machine_.memory_bandwidth = Rounded(bytes / seconds);
    machine_.memory_efficiency = 1;
  }

  void FitRates() {
    std::map<std::string, Bins> types;
    for (const OpTime& time : times_) {
      if (time.op != kProduct || time.flops < kSmallFlops || Net(time) <= 0) continue;
      types[time.dtype][BinOf(time.flops)].Add(time.flops, Net(time));
    }
    machine_.compute.clear();
    for (const auto& [dtype, bins] : types) {
      ComputeRate rate;
      rate.dtype = dtype;
      rate.flops = HighestRate(bins);
      rate.points = PointsOf(bins);
      rate.efficiency = rate.points.back().efficiency;
      machine_.compute.push_back(std::move(rate));
    }
  }

  void FitFactors() {
    struct Sum {
      double base = 0, seconds = 0;
    };
    std::map<std::pair<std::string, std::string>, Sum> ops;
    for (const OpTime& time : times_) {
      if (IsSmall(time)) continue;
      Sum& sum = ops[{time.op, time.dtype}];
      sum.base += std::max(time.bytes / machine_.BytesPerSecond(),
                           time.flops / machine_.RateOf(time.dtype).At(time.flops));
      sum.seconds += Net(time);
    }
    machine_.ops.clear();
    for (const auto& [key, sum] : ops) {
      const double factor = Rounded(sum.seconds / sum.base);
      if (factor > 0) machine_.ops.push_back({key.first, key.second, factor});
    }
  }

  const std::vector<OpTime>& times_;
  Machine machine_;
};

// Layers about as much wider than some as others are than they, for products of sizes between.
ModelConfig Between(const ModelConfig& narrow, const ModelConfig& wide) {
  ModelConfig model = narrow;
  const double width = std::sqrt(static_cast<double>(narrow.hidden * wide.hidden));
  const double vectors = width / static_cast<double>(model.heads * kVector);
  model.head_dim = std::max<int64_t>(std::llround(vectors), 1) * kVector;
  model.hidden = model.heads * model.head_dim;
  model.ffn = model.hidden * narrow.ffn / narrow.hidden;
  model.max_positions = wide.max_positions;
  return model;
}

class Calibration {
 public:
  explicit Calibration(const CalibrationSetting& setting) : setting_(setting) {}

  absl::StatusOr<Machine> Run() {
    MGC_ASSIGN_OR_RETURN(machine_, FindMachinePreset("cpu-threads"));
    MGC_ASSIGN_OR_RETURN(std::vector<TimedStepSpec> steps, StepsToTime());
    for (int64_t round = 0; round < setting_.rounds; ++round) {
      for (TimedStepSpec& step : steps) MGC_RETURN_IF_ERROR(TimeOnce(&step));
    }
    std::vector<OpTime> times;
    std::vector<MessageTime> messages;
    for (const TimedStepSpec& step : steps) {
      MGC_ASSIGN_OR_RETURN(const Plan plan, CompileModel(step.model, step.parallel, machine_));
      // All ranks keep all cores busy, so that each has its part of them. All of a group are in a
      // collective, and nothing else can run: cores work or wait for as long, and each rank is
      // charged its part.
      const double workers = setting_.workers;
      if (step.kind == TraceKind::kCollective) {
        AddMessages(
            plan, step, [&](int64_t ranks) { return workers / static_cast<double>(ranks); },
            &messages);
      } else {
        AddTimes(plan, step, workers / static_cast<double>(plan.mesh.world_size()), &times);
      }
    }
    Machine fitted = FitMachine(times, machine_);
    fitted.name = "calibrated";
    fitted.cores = setting_.workers;
    fitted.tiers = {FitTier(messages, machine_.tiers[0])};
    const Host host = ReadHost();
    const int64_t memory = std::min(host.memory_bytes, host.limit_bytes);
    if (memory != Host::kUnlimited) fitted.memory = memory;
    MGC_RETURN_IF_ERROR(CheckMachine(fitted));
    return fitted;
  }

 private:
  // Copies of each model in each type, in large and small steps; and ranks that sum within layers,
  // much and little.
  absl::StatusOr<std::vector<TimedStepSpec>> StepsToTime() const {
    MGC_ASSIGN_OR_RETURN(const ModelConfig gpt2_tiny, LoadModelPreset("gpt2-tiny"));
    MGC_ASSIGN_OR_RETURN(const ModelConfig llama_tiny, LoadModelPreset("llama-tiny"));
    const ModelConfig middle = Between(gpt2_tiny, setting_.gpt2);
    const int64_t ranks = std::min<int64_t>(setting_.workers, kMostRanks);
    const int64_t sequences = std::max<int64_t>(setting_.sequences / ranks, 1);
    const int64_t length = setting_.seq_length;
    std::vector<TimedStepSpec> steps;
    for (const DType type : setting_.types) {
      steps.push_back({setting_.gpt2, Copies(ranks, sequences, length, type)});
      steps.push_back({setting_.llama, Copies(ranks, sequences, length, type)});
      steps.push_back({setting_.gpt2, Copies(ranks, 1, length, type)});
      steps.push_back({setting_.gpt2, Copies(ranks, 1, length / 4, type)});
      steps.push_back({middle, Copies(ranks, 1, length, type)});
      steps.push_back({middle, Copies(ranks, 1, length / 4, type)});
      steps.push_back({gpt2_tiny, Copies(ranks, kTinySequences, kTinyLength, type)});
      steps.push_back({llama_tiny, Copies(ranks, kTinySequences, kTinyLength, type)});
    }
    for (const int64_t group : kGroups) {
      const ModelConfig large = LayersFor(setting_.gpt2, group), tiny = LayersFor(gpt2_tiny, group);
      steps.push_back(Sums(large, group, setting_.sequences, length));
      steps.push_back(Sums(large, group, 1, length));
      steps.push_back(Sums(tiny, group, 1, kTinyLength));
    }
    return steps;
  }

  static TimedStepSpec Sums(const ModelConfig& model, int64_t group, int64_t sequences,
                            int64_t length) {
    return {model, Group(group, sequences, length), TraceKind::kCollective};
  }

  // Some steps behind two that do not count.
  absl::Status TimeOnce(TimedStepSpec* step) const {
    MGC_ASSIGN_OR_RETURN(
        const std::unique_ptr<TrainingSteps> steps,
        TrainingSteps::Create(step->model, step->parallel, machine_, setting_.workers));
    for (int i = 0; i < 2; ++i) MGC_RETURN_IF_ERROR(steps->Step().status());
    for (int64_t i = 0; i < kStepsOfRound; ++i) {
      MGC_RETURN_IF_ERROR(steps->Step().status());
      KeepLastStep(*steps, step);
    }
    return absl::OkStatus();
  }

  const CalibrationSetting setting_;
  Machine machine_;  // for which plans are made meanwhile
};

}  // namespace

bool IsSmall(const OpTime& time) { return time.bytes <= kSmallBytes && time.flops <= kSmallFlops; }

Machine FitMachine(const std::vector<OpTime>& times, const Machine& like) {
  return Fit(times, like).Run();
}

NetworkTier FitTier(const std::vector<MessageTime>& times, const NetworkTier& like) {
  NetworkTier tier = like;
  double shortest = times.front().seconds;
  for (const MessageTime& time : times) shortest = std::min(shortest, time.seconds);
  tier.latency = Rounded(shortest);
  tier.hop = 0;
  Bins bins;
  for (const MessageTime& time : times) {
    const double net = time.seconds - tier.latency;
    if (time.bytes >= 1 && net > 0) bins[BinOf(time.bytes)].Add(time.bytes, net);
  }
  if (bins.empty()) return tier;
  tier.bandwidth = HighestRate(bins);
  tier.points = PointsOf(bins);
  tier.efficiency = tier.points.back().efficiency;
  return tier;
}

absl::StatusOr<CalibrationSetting> DefaultCalibration() {
  constexpr int64_t kLayers = 2;
  CalibrationSetting setting;
  MGC_ASSIGN_OR_RETURN(setting.gpt2, LoadModelPreset("gpt2-124m"));
  MGC_ASSIGN_OR_RETURN(setting.llama, LoadModelPreset("llama-tiny"));
  setting.gpt2.layers = setting.llama.layers = kLayers;
  setting.llama.max_positions = setting.gpt2.max_positions;
  setting.llama.hidden = setting.gpt2.hidden;
  setting.llama.heads = setting.gpt2.heads;
  setting.llama.kv_heads = setting.gpt2.heads / 3;
  setting.llama.head_dim = setting.gpt2.head_dim;
  setting.llama.ffn = setting.gpt2.hidden * 8 / 3;
  return setting;
}

absl::StatusOr<Machine> Calibrate(const CalibrationSetting& setting) {
  return Calibration(setting).Run();
}

}  // namespace mgc
