// A model directory's weights out of a checkpoint, and a checkpoint out of a model directory.
//
// Both go through their files piece by piece, whatever their sizes.

#ifndef MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_
#define MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/weights/weight_map.h"
#include "runtime/data/safetensors.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/weights/model_files.h"

namespace mgc {

// As huggingface_hub has it.
inline constexpr int64_t kMostShardBytes = 5000000000;

struct ExportOptions {
  std::vector<SafetensorsType> types;  // of the map's tensors
  // Of tensors in one file; a larger tensor has a file of its own.
  int64_t shard_bytes = kMostShardBytes;
};

// Writes the parameters of the checkpoint in `folder` into `dir`, a folder that is there, as
// `model.safetensors`, or as several such files with their index; their number of elements.
// FailedPrecondition names all parameters that checkpoint and map do not have in common, DataLoss
// one that is not what was written, OutOfRange one with values that its type cannot hold.
absl::StatusOr<int64_t> ExportWeights(const std::string& folder, const WeightMap& map,
                                      const ExportOptions& options, const std::string& dir);

// Makes the checkpoint of step 0 in `dir` from a model directory; its number of elements.
// OutOfRange names a parameter that is not finite.
absl::StatusOr<int64_t> ImportCheckpoint(const ModelFiles& files, const CheckpointDir& dir,
                                         const std::string& version);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_
