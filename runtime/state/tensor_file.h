// Logical tensors as a file, written from the ranks' arenas.
//
// The file depends on neither plan nor processes: where its bytes lie is known before any is there,
// and each process puts the tiles of its ranks into their places. No process needs room for a
// tensor.

#ifndef MGC_RUNTIME_STATE_TENSOR_FILE_H_
#define MGC_RUNTIME_STATE_TENSOR_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/run/executor.h"
#include "runtime/state/parameters.h"

namespace mgc {

// Writes what GatherTensors gathers (runtime/data/safetensors.h). Every process of the run calls
// this, and all end alike (runtime/comm/team_file.h).
absl::Status WriteTensors(const Executor& executor, TensorRole role, const std::string& path);

// A tensor of f32 in a file.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first byte, from the begin of the file
  uint64_t hash = 0;   // HashOfRun of all of it
};

// A hash of values that begin at element `whole` of a tensor. Those of the parts of a tensor add up
// to the hash of the whole, modulo 2^64, however it is cut and in whatever order: ranks hold pieces
// of tensors, and none sees a whole one. A value that is changed changes the hash; several that are
// leave it as it was with a probability of 2^-64.
uint64_t HashOfRun(int64_t whole, absl::Span<const float> values);

// As WriteTensors; what lies where, by name, in all processes alike. OutOfRange names a tensor that
// has a value that is not finite.
absl::StatusOr<std::vector<StoredTensor>> StoreTensors(const Executor& executor, TensorRole role,
                                                       const std::string& path);

// Fills the tensors of all ranks from a file that StoreTensors has written, of this plan or any
// other of the model. Every process calls this with the same tensors, and all end alike. Each rank
// reads the bytes that it holds; returns how many the ranks of this process have read, of which
// those of the header are not. FailedPrecondition when the plan has other tensors or shapes (all
// are named); DataLoss, with file and tensor, when the file is not what was written; tensors may
// then be overwritten in part.
absl::StatusOr<int64_t> RestoreTensors(TensorRole role, const std::string& path,
                                       absl::Span<const StoredTensor> tensors, Executor& executor);

// Reads all of such a file, without a plan, and compares it with `tensors`; its bytes. DataLoss,
// with file and tensor, when it is not what was written.
absl::StatusOr<int64_t> VerifyTensors(const std::string& path,
                                      absl::Span<const StoredTensor> tensors);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_TENSOR_FILE_H_
