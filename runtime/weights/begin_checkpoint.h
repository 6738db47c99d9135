// A checkpoint to begin from, made of weights: those of a model directory, or of a file with the
// names and shapes of docs/parameters.md.
//
// Files are gone through piece by piece, whatever their sizes. What else a run carries on begins as
// in a new one.

#ifndef MGC_RUNTIME_WEIGHTS_BEGIN_CHECKPOINT_H_
#define MGC_RUNTIME_WEIGHTS_BEGIN_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/weights/model_files.h"

namespace mgc {

// Makes the checkpoint of step 0 in `dir`; its number of elements. OutOfRange names a parameter
// that is not finite.
absl::StatusOr<int64_t> BeginWithModel(const ModelFiles& files, const CheckpointDir& dir,
                                       const std::string& version);

// The same of the tensors in the file `path`, of F32, BF16 or F16; InvalidArgument names all of
// other types.
absl::StatusOr<int64_t> BeginWithFile(const std::string& path, const CheckpointDir& dir,
                                      const std::string& version);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_BEGIN_CHECKPOINT_H_
