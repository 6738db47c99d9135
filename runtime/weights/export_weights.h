// The parameters of a checkpoint as weights that others read, in the files of a model directory or
// in one of its own.
//
// Files are gone through piece by piece, whatever their sizes.

#ifndef MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_
#define MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/weights/weight_map.h"
#include "runtime/data/safetensors.h"
#include "runtime/weights/model_files.h"

namespace mgc {

// As huggingface_hub has it.
inline constexpr int64_t kMostShardBytes = 5000000000;

// What is added to a parameter of [in..., out...]: scale * a b, of parameters [in..., rank] and
// [rank, out...] of the same checkpoint.
struct LowRankTerm {
  std::string parameter, a, b;
  double scale = 1;
};

struct ExportOptions {
  std::vector<SafetensorsType> types;  // of the map's tensors
  // Of tensors in one file; a larger tensor has a file of its own.
  int64_t shard_bytes = kMostShardBytes;
  // At most one for a parameter. Each sum is taken in f64 and rounded once, and then as the type
  // says.
  std::vector<LowRankTerm> terms;
  // Parameters of the checkpoint that the map has no tensors for.
  std::set<std::string> left_out;
};

// Writes the map's parameters of the checkpoint in `folder` into `dir`, a folder that is there, as
// `model.safetensors`, or as several such files with their index; their number of elements.
// FailedPrecondition names all parameters that checkpoint and map do not have in common, DataLoss
// one that is not what was written, OutOfRange one with values that its type cannot hold.
absl::StatusOr<int64_t> ExportWeights(const std::string& folder, const WeightMap& map,
                                      const ExportOptions& options, const std::string& dir);

// Writes the map's parameters to the file `path` alone, each rounded once to `type`; those of the
// checkpoint that the map lacks are left out. Errors as above.
absl::StatusOr<int64_t> ExportPart(const std::string& folder, const WeightMap& map,
                                   SafetensorsType type, const std::string& path);

// Writes all parameters to the file `path`, with the names and shapes of docs/parameters.md,
// each rounded once to `type`: F32, BF16 or F16. `path` is as it was after an error.
absl::StatusOr<int64_t> ExportFile(const std::string& folder, SafetensorsType type,
                                   const std::string& path);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_EXPORT_WEIGHTS_H_
