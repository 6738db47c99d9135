// Checkpoints of a model in training, to be timed beside what the disk can do and beside a step.

#ifndef MGC_TOOLS_BENCHMARKS_CHECKPOINT_SIDES_H_
#define MGC_TOOLS_BENCHMARKS_CHECKPOINT_SIDES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/types/machine.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

enum class CheckpointWork {
  kSave,   // a save while nothing else is done
  kWrite,  // a file of as many bytes as a save writes, in blocks of 1 MiB, synchronized at its end
  kStall,  // a save during a step: the time by which training is later for it
  kStep,   // a step without
};

// One of them a step, in the folder for temporary files; what is there of the step before is
// overwritten. Errors of the compiler, the trainer and the disk.
absl::StatusOr<std::unique_ptr<BenchSide>> CheckpointSide(CheckpointWork work,
                                                          const ModelConfig& config,
                                                          const ParallelConfig& parallel,
                                                          const Machine& machine, int workers);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_CHECKPOINT_SIDES_H_
