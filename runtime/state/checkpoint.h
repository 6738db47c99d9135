// A run's state out of the ranks of a plan into a folder, and back into the ranks of any plan of
// the same model.
//
// What crosses a step: parameters (the f32 masters), both moments, what the plan carries, and the
// counts of TrainingState. Files hold logical tensors (runtime/state/tensor_file.h), so that
// nothing in them depends on the plan, the number of ranks or of processes.

#ifndef MGC_RUNTIME_STATE_CHECKPOINT_H_
#define MGC_RUNTIME_STATE_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/parallel.h"
#include "runtime/run/executor.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/state/manifest.h"
#include "runtime/state/tensor_file.h"

namespace mgc {

inline constexpr char kParametersFile[] = "parameters.safetensors";

// How many values of f32 this process writes of a checkpoint. Errors of HeldTensors.
absl::StatusOr<int64_t> WrittenHere(const Executor& executor);

// A checkpoint that is being written. All processes of a run begin and end it together, between
// steps; in between each writes what its ranks hold, in any thread, also while they compute the
// next step, whose updates are to be held (Executor::HoldUpdates), or any number of steps, of what
// was copied before. What is not ended leaves none.
class PendingCheckpoint {
 public:
  // Of what the ranks hold, as `state`, whose carried numbers are filled in. `dir` is the first
  // process's, null elsewhere; it and the executor outlive this. All processes must reach the
  // folder by its name.
  static absl::StatusOr<std::unique_ptr<PendingCheckpoint>> Begin(const Executor& executor,
                                                                  const CheckpointDir* dir,
                                                                  TrainingState state);
  ~PendingCheckpoint();
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  // Copies what Write writes to `room`, of WrittenHere values at least, which outlives Write, with
  // the threads of `parallel`. No update need then be held.
  void Copy(Parallel& parallel, absl::Span<float> room);

  // Once; `comes_on` is called now and then.
  void Write(absl::FunctionRef<void()> comes_on);

  // Behind Write: the folder that the checkpoint is in. All processes end alike. After an error no
  // checkpoint has appeared and none has changed; OutOfRange names a tensor that is not finite.
  absl::StatusOr<std::string> End();

  int64_t step() const { return manifest_.state.step; }

 private:
  PendingCheckpoint(const Executor& executor, const CheckpointDir* dir)
      : executor_(executor), dir_(dir) {}
  absl::Status Open(TrainingState state);
  absl::Status Finish();

  const Executor& executor_;
  const CheckpointDir* const dir_;
  std::string folder_;
  Manifest manifest_;
  std::vector<std::unique_ptr<TensorStore>> stores_;  // by file
  absl::Status written_ = absl::FailedPreconditionError("nothing is written");
  bool published_ = false;
};

struct LoadedState {
  TrainingState state;
  int64_t bytes = 0;  // that the ranks of this process have read of tensors
};

// Fills the ranks with the checkpoint in `folder`, which the first process names, but for the
// carried numbers (PutCarried). A plan that trains nothing takes the parameters alone. One of
// weights alone (runtime/weights/begin_checkpoint.h) leaves moments zero.
// Every process calls this, and all end alike. Errors are those of ReadManifest and RestoreTensors.
absl::StatusOr<LoadedState> LoadCheckpoint(const std::string& folder, Executor& executor);

// Reads all of the checkpoint in `folder` and compares it with its hashes; its bytes.
absl::StatusOr<int64_t> VerifyCheckpoint(const std::string& folder);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_CHECKPOINT_H_
