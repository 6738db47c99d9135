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
#include "tools/benchmarks/comparison.h"

namespace mgc {

// The plan of a model on this machine. Errors of the compiler.
absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel);

// A model, its plan and its trainer on made-up text.
class TrainingSteps : public BenchSide {
 public:
  // Every rank in this process, on `workers` workers. Errors of the compiler and of
  // Trainer::Create.
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(const ModelConfig& config,
                                                           const ParallelConfig& parallel,
                                                           int workers);
  TrainingSteps(const TrainingSteps&) = delete;
  TrainingSteps& operator=(const TrainingSteps&) = delete;

  // The first step touches all memory for the first time, and the second is the one whose profile
  // is kept.
  absl::StatusOr<StepTime> Step() override;
  Profile profile() const override { return profile_; }

 private:
  TrainingSteps() = default;
  void KeepProfile(int64_t begin_ns);

  Plan plan_;
  std::unique_ptr<Trainer> trainer_;
  Profile profile_;
  int workers_ = 1;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_TRAINING_H_
