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
#include "graph/types/machine.h"
#include "passes/config/parallel_config.h"
#include "runtime/run/trace.h"
#include "runtime/train/trainer.h"
#include "tools/benchmarks/comparison.h"
#include "tools/devices/devices.h"
#include "tools/launch/world.h"

namespace mgc {

// The plan of a model on a machine. Errors of the compiler.
absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel,
                                  const Machine& machine);
// On `cpu-threads`.
absl::StatusOr<Plan> CompileModel(const ModelConfig& config, const ParallelConfig& parallel);

// A model, its plan and its trainer on made-up text.
class TrainingSteps : public BenchSide {
 public:
  // On `workers` workers every rank in this process, or those that are its own in `world`;
  // `machine` says what a step is predicted to take. Errors of the compiler and of Trainer::Create.
  static absl::StatusOr<std::unique_ptr<TrainingSteps>> Create(const ModelConfig& config,
                                                               const ParallelConfig& parallel,
                                                               const Machine& machine, int workers,
                                                               const World* world = nullptr);
  // On a device, every rank in this process; of steps that are not `traced` LastStep says nothing,
  // and a device of its own does them as fast as it can.
  static absl::StatusOr<std::unique_ptr<TrainingSteps>> CreateOn(const RunDevice& device,
                                                                 bool traced,
                                                                 const ModelConfig& config,
                                                                 const ParallelConfig& parallel,
                                                                 const Machine& machine);
  TrainingSteps(const TrainingSteps&) = delete;
  TrainingSteps& operator=(const TrainingSteps&) = delete;

  // The first step touches all memory for the first time, and the second is the one whose profile
  // is kept.
  absl::StatusOr<StepTime> Step() override;
  Profile profile() const override { return profile_; }

  const Plan& plan() const { return plan_; }
  Trainer& trainer() { return *trainer_; }
  // What the last step recorded of a rank.
  std::vector<TraceEvent> LastStep(int rank) const;

 private:
  TrainingSteps() = default;
  static absl::StatusOr<std::unique_ptr<TrainingSteps>> Make(Plan plan, int64_t seq_length,
                                                             TrainOptions options);
  void KeepProfile();

  Plan plan_;
  std::unique_ptr<Trainer> trainer_;
  Profile profile_;
  RankRange ranks_;  // here
  int workers_ = 1;
  int64_t began_ns_ = 0;  // the last step
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_TRAINING_H_
