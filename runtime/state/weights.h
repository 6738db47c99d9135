// Weights alone: the parameters of a checkpoint as one file that others read, and a checkpoint to
// begin from made of such a file.
//
// Names and shapes are those of docs/parameters.md, in both. Files are gone through piece by piece,
// whatever their sizes.

#ifndef MGC_RUNTIME_STATE_WEIGHTS_H_
#define MGC_RUNTIME_STATE_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/safetensors.h"
#include "runtime/state/checkpoint_dir.h"

namespace mgc {

// Writes the parameters of the checkpoint in `folder` to `path`, each rounded once to `type`: F32,
// BF16 or F16; their number of elements. DataLoss where a tensor is not what was written,
// OutOfRange where one has values that `type` cannot hold; `path` is then as it was.
absl::StatusOr<int64_t> WriteWeights(const std::string& folder, const std::string& path,
                                     SafetensorsType type);

// Makes the checkpoint of step 0 in `dir` from the tensors in the file `path`, of F32, BF16 or F16;
// their number of elements. What else a run carries on begins as in a new one. InvalidArgument
// names all tensors of other types, OutOfRange one that is not finite.
absl::StatusOr<int64_t> ReadWeights(const std::string& path, const CheckpointDir& dir,
                                    const std::string& version);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_WEIGHTS_H_
