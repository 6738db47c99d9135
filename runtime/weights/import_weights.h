// The first values of a run out of a model directory.

#ifndef MGC_RUNTIME_WEIGHTS_IMPORT_WEIGHTS_H_
#define MGC_RUNTIME_WEIGHTS_IMPORT_WEIGHTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "runtime/run/executor.h"
#include "runtime/weights/model_files.h"

namespace mgc {

// FailedPrecondition names all parameters that files and plan do not have in common, or of other
// shapes. An adapter that the plan trains may be in no file.
absl::Status CheckSameParameters(const ModelFiles& files, const Plan& plan);

// Fills the parameters of all ranks of a plan of the same parameters. Every process calls this, and
// all end alike; each rank reads what it holds, of what is padding nothing. An adapter that the
// plan trains stays as it is. Returns the bytes of tensors that this process has read. OutOfRange
// names a tensor that is not finite, DataLoss a file that has become shorter; parameters may then
// be overwritten in part.
absl::StatusOr<int64_t> ImportWeights(const ModelFiles& files, Executor& executor);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_IMPORT_WEIGHTS_H_
