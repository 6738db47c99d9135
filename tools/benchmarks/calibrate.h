// A description of this machine (graph/types/machine.h) from training steps that run on it, so that
// predictions are of this machine.
//
// What is timed are instructions of real steps, not kernels alone: they find their operands where a
// step leaves them, in a cache or not, and share the cores as they do in a step.

#ifndef MGC_TOOLS_BENCHMARKS_CALIBRATE_H_
#define MGC_TOOLS_BENCHMARKS_CALIBRATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/types/machine.h"
#include "graph/types/tensor_type.h"
#include "tools/benchmarks/timed_step.h"

namespace mgc {

// Whether an instruction takes no longer than to start it.
bool IsSmall(const OpTime& time);

// Overhead, bandwidth of the memory, rates of products and factors of ops, such that
// passes/plan/time/cost.h says of these instructions what they took: overhead is the median of the
// smallest; the update of parameters tells the bandwidth, plain products the rates by size, and
// everything else by how much it is off. `times` has both of those; `like` says what they do not.
Machine FitMachine(const std::vector<OpTime>& times, const Machine& like);

// The tier between ranks of which passes/plan/time/ring_time.h says of these what they took: the
// shortest tells the latency, the others the bandwidth by size. `times` is not empty.
NetworkTier FitTier(const std::vector<MessageTime>& times, const NetworkTier& like);

struct CalibrationSetting {
  // Sizes of the large steps; small ones are those of `gpt2-tiny` and `llama-tiny`.
  ModelConfig gpt2, llama;
  std::vector<DType> types = {DType::kF32, DType::kBF16};  // in which it computes
  int64_t sequences = 4;
  int64_t seq_length = 256;
  int workers = 1;
  // All steps take turns so many times, a few steps each, and of every instruction the
  // quartile of its times counts: a machine's speed moves within seconds.
  int64_t rounds = 5;
};
// Two layers of `gpt2-124m`, and of a model of its width in the family of Llama.
absl::StatusOr<CalibrationSetting> DefaultCalibration();

// Trains for a minute or two: copies of a model beside each other, which keep all workers busy as
// ranks do, and groups of ranks that sum within layers. The machine has as many cores as there are
// workers, and the memory that this process may use. Errors
// of the compiler and the trainer.
absl::StatusOr<Machine> Calibrate(const CalibrationSetting& setting);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_CALIBRATE_H_
