// A description of a GPU (graph/types/machine.h) from training steps that run on it.
//
// What is timed are instructions of real steps, as on processors (calibrate.h). The host waits
// behind each that it times, which a step that is replayed as a graph does not; how long it waits
// the smallest instructions tell, which take the GPU no time. What an instruction costs without a
// wait is what replayed steps take beyond the work of their instructions.

#ifndef MGC_TOOLS_BENCHMARKS_CALIBRATE_GPU_H_
#define MGC_TOOLS_BENCHMARKS_CALIBRATE_GPU_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/types/machine.h"
#include "graph/types/tensor_type.h"
#include "tools/benchmarks/timed_step.h"
#include "tools/devices/devices.h"

namespace mgc {

// A step, by its instructions as the host has timed them, and as a whole when it was replayed.
struct ReplayedStep {
  std::vector<OpTime> times;
  double seconds = 0;
};

// How long the host waits behind an instruction: what the smallest of these take, in the middle.
// 0 without small ones.
double WaitOf(const std::vector<OpTime>& times);
// What an instruction costs in a replayed step beyond its work; `steps` is not empty.
double OverheadOf(const std::vector<ReplayedStep>& steps, double wait);
// What instructions take in a replayed step.
std::vector<OpTime> AsReplayed(std::vector<OpTime> times, double wait, double overhead);

struct GpuCalibrationSetting {
  // Sizes of the large steps; of the small ones, which tell the overhead.
  ModelConfig gpt2, llama, tiny;
  std::vector<DType> types = {DType::kF32, DType::kBF16};  // in which it computes
  int64_t sequences = 16;
  int64_t seq_length = 1024;
  int64_t tiny_length = 32;
  // As in CalibrationSetting.
  int64_t rounds = 3;
  double warm_up_seconds = 0.3;  // of steps that do not count
  Gpus gpus;
};
// Two layers of `gpt2-124m`, and of a model in the family of Llama that is 2,048 wide.
absl::StatusOr<GpuCalibrationSetting> DefaultGpuCalibration(const Gpus& gpus);

// Trains on one GPU; where there are several, groups of 2, 4 and 8 of them sum within layers, and
// tell of the innermost network. What cannot be measured here is that of `like`, a machine of GPUs;
// `notes` says what. Errors of the compiler and the trainer.
absl::StatusOr<Machine> CalibrateGpu(const GpuCalibrationSetting& setting, const RunDevice& device,
                                     const Machine& like, std::vector<std::string>* notes);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_CALIBRATE_GPU_H_
