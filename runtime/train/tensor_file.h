// Logical tensors as a file, written from the ranks' arenas.
//
// The file depends on neither plan nor processes: where its bytes lie is known before any is there,
// and each process puts the tiles of its ranks into their places. No process needs room for a
// tensor.

#ifndef MGC_RUNTIME_TRAIN_TENSOR_FILE_H_
#define MGC_RUNTIME_TRAIN_TENSOR_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/run/executor.h"
#include "runtime/train/parameters.h"

namespace mgc {

// Writes what GatherTensors gathers (runtime/data/safetensors.h). Every process of the run calls
// this, and all end alike (runtime/comm/team_file.h).
absl::Status WriteTensors(const Executor& executor, TensorRole role, const std::string& path);

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_TENSOR_FILE_H_
