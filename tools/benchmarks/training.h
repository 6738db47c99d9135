// Real training steps to be timed, and where their time goes.

#ifndef MGC_TOOLS_BENCHMARKS_TRAINING_H_
#define MGC_TOOLS_BENCHMARKS_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "passes/config/parallel_config.h"
#include "runtime/train/trainer.h"

namespace mgc {

// Time of one kind of work in one step, over all ranks, in seconds of one core: a kernel that all
// cores share counts for each of them.
struct WorkShare {
  std::string name;  // an op; `collectives`, `transfers`
  double seconds = 0;
  int64_t calls = 0;
};

// The plan of a model on this machine. Errors of the compiler.
absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel);

// A model, its plan and its trainer on made-up text.
class TrainingSteps {
 public:
  // Every rank in this process, on `workers` workers. Errors of the compiler and of
  // Trainer::Create.
  static absl::StatusOr<std::unique_ptr<TrainingSteps>> Create(const ModelConfig& config,
                                                               const ParallelConfig& parallel,
                                                               int workers);
  TrainingSteps(const TrainingSteps&) = delete;
  TrainingSteps& operator=(const TrainingSteps&) = delete;

  // Seconds of the next step. The first step touches all memory for the first time, and the second
  // is the one whose shares are kept.
  absl::StatusOr<double> Step();

  // Of the second step, largest first. Empty before it.
  const std::vector<WorkShare>& shares() const { return shares_; }
  double shares_seconds() const { return shares_seconds_; }  // of the whole second step
  int64_t tokens() const { return plan_.global_batch_size * plan_.seq_length; }
  int64_t peak_bytes() const { return trainer_->executor().MeasuredPeak(); }

 private:
  TrainingSteps() = default;
  void KeepShares(int64_t begin_ns);

  Plan plan_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<WorkShare> shares_;
  double shares_seconds_ = 0;
  int workers_ = 1;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_TRAINING_H_
