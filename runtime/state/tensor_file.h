// Logical tensors as a file, written from the ranks' arenas.
//
// The file depends on neither plan nor processes: where its bytes lie is known before any is there,
// and each process puts the tiles of its ranks into their places. No process needs room for a
// tensor.

#ifndef MGC_RUNTIME_STATE_TENSOR_FILE_H_
#define MGC_RUNTIME_STATE_TENSOR_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/parallel.h"
#include "runtime/comm/team_file.h"
#include "runtime/data/safetensors.h"
#include "runtime/run/executor.h"
#include "runtime/state/parameters.h"
#include "runtime/state/tensor_shapes.h"

namespace mgc {

// Writes what GatherTensors gathers (runtime/data/safetensors.h), with its errors. Every process of
// the run calls this, and all end alike (runtime/comm/team_file.h).
absl::Status WriteTensors(const Executor& executor, TensorRole role, const std::string& path);

// A tensor of f32 in a file.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first byte, from the begin of the file
  uint64_t hash = 0;   // HashOfRun of all of it
};

TensorShapes ShapesOf(absl::Span<const StoredTensor> tensors);

// A hash of values that begin at element `whole` of a tensor. Those of the parts of a tensor add up
// to the hash of the whole, modulo 2^64, however it is cut and in whatever order: ranks hold pieces
// of tensors, and none sees a whole one. A value that is changed changes the hash; several that are
// by chance leave it as it was with a probability of about 2^-64.
uint64_t HashOfRun(int64_t whole, absl::Span<const float> values);

bool AllFinite(absl::Span<const float> values);

// DataLoss, with file and tensor, unless `hash` is the tensor's.
absl::Status CheckHash(const std::string& path, const StoredTensor& tensor, uint64_t hash);

// A file of tensors that is being written. All processes of the run begin and end it together,
// between steps; each writes what its ranks hold. What is not ended leaves no file.
class TensorStore {
 public:
  // `executor` outlives the store. FailedPrecondition where weights are held as whole numbers.
  static absl::StatusOr<std::unique_ptr<TensorStore>> Begin(const Executor& executor,
                                                            TensorRole role,
                                                            const std::string& path);

  // Copies what Write writes to the begin of `room`, which outlives Write, with the threads of
  // `parallel`; how many values. Write then takes them from there, and steps need not leave
  // anything as it is.
  int64_t Copy(Parallel& parallel, absl::Span<float> room);

  // Once, in any thread, while what is written stays as it is; `comes_on` is called now and then.
  // OutOfRange names a tensor that has a value that is not finite.
  absl::Status Write(absl::FunctionRef<void()> comes_on);

  // `written`: what Write has returned. What lies where, by name, in all processes alike, or the
  // error that Team::Agree chooses.
  absl::StatusOr<std::vector<StoredTensor>> End(const absl::Status& written);

 private:
  TensorStore(const Executor& executor, std::vector<HeldTensor> tensors, SafetensorsLayout layout,
              TeamFile file);

  const Executor& executor_;
  const std::vector<HeldTensor> tensors_;
  const SafetensorsLayout layout_;
  TeamFile file_;
  std::vector<uint64_t> hashes_;  // of what is written here
  absl::Span<float> copy_;        // of what is to be; empty: it is taken from the ranks
};

// Fills the tensors of all ranks from a file that a TensorStore has written, of this plan or any
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
