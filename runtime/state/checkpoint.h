// A run's state out of the ranks of a plan into a folder, and back into the ranks of any plan of
// the same model.
//
// What crosses a step: parameters (the f32 masters), both moments, what the plan carries, and the
// counts of TrainingState. Files hold logical tensors (runtime/state/tensor_file.h), so that
// nothing in them depends on the plan, the number of ranks or of processes.

#ifndef MGC_RUNTIME_STATE_CHECKPOINT_H_
#define MGC_RUNTIME_STATE_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/run/executor.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/state/manifest.h"

namespace mgc {

// Saves what the executor's ranks hold as `state`, whose carried numbers are filled in; the folder
// that it is in then. Every process of the run calls this, and all end alike; `dir` is the first
// one's, null elsewhere. All processes must reach the folder by its name. After an error no
// checkpoint has appeared and none has changed; OutOfRange names a tensor that is not finite.
absl::StatusOr<std::string> SaveCheckpoint(const Executor& executor, const CheckpointDir* dir,
                                           TrainingState state);

struct LoadedState {
  TrainingState state;
  int64_t bytes = 0;  // that the ranks of this process have read of tensors
};

// Fills the ranks with the checkpoint in `folder`, which the first process names, but for the
// carried numbers (PutCarried). Every process calls this, and all end alike. Errors are those of
// ReadManifest and RestoreTensors.
absl::StatusOr<LoadedState> LoadCheckpoint(const std::string& folder, Executor& executor);

// Reads all of the checkpoint in `folder` and compares it with its hashes; its bytes.
absl::StatusOr<int64_t> VerifyCheckpoint(const std::string& folder);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_CHECKPOINT_H_
