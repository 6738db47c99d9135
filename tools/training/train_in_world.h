// One process of a run of mgc-run, among the others of its world.

#ifndef MGC_TOOLS_TRAINING_TRAIN_IN_WORLD_H_
#define MGC_TOOLS_TRAINING_TRAIN_IN_WORLD_H_

#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "runtime/train/trainer.h"
#include "runtime/weights/model_files.h"
#include "tools/cli/run_flags.h"
#include "tools/launch/injection.h"
#include "tools/launch/world.h"

namespace mgc {

// What all processes of a run begin with.
struct RunBasis {
  const Plan& plan;
  const RunFlags& flags;
  TrainOptions train;
  absl::optional<Injection> injection;
  const ModelFiles* init = nullptr;
};

// Trains or evaluates with the ranks that are this process's, and writes what the flags ask for;
// the exit code. Whatever is wrong is told, and to the other processes too.
int TrainInWorld(World& world, const RunBasis& basis);

}  // namespace mgc

#endif  // MGC_TOOLS_TRAINING_TRAIN_IN_WORLD_H_
