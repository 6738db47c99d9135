// What a step has left for whoever runs it (graph/ir/results.h).

#ifndef MGC_RUNTIME_GENERATE_READ_RESULT_H_
#define MGC_RUNTIME_GENERATE_READ_RESULT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/run/executor.h"

namespace mgc {

// The whole, logical tensor, row-major, put together of the tiles of all ranks. Between steps;
// every process of a run calls it, and each has all of it. NotFound when the steps leave no such
// result, InvalidArgument for one that is not f32; errors of the other processes.
absl::StatusOr<std::vector<float>> ReadResult(const Executor& executor, absl::string_view name);

}  // namespace mgc

#endif  // MGC_RUNTIME_GENERATE_READ_RESULT_H_
