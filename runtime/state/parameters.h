// Parameters as logical tensors: their first values, and what the ranks hold put together again.
//
// Nothing here depends on the plan: element i of parameter `layers.3.mlp.up` starts with the i-th
// number of the stream of that name, and what is gathered is the logical tensor without padding.

#ifndef MGC_RUNTIME_STATE_PARAMETERS_H_
#define MGC_RUNTIME_STATE_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/parallel.h"
#include "runtime/run/executor.h"
#include "runtime/state/held_tensors.h"

namespace mgc {

struct LogicalTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major
};

// Fills all ranks' parameters of a plan that passes CheckParameters: normal numbers of standard
// deviation `std` keyed by seed, name and logical index, zeros, or ones, as the parameter says.
// Room beyond the logical tensor is left as it is (zero in a new arena).
void InitializeParameters(uint64_t seed, Executor& executor);

// Calls `fn` for all values of a tensor that are to be taken from the ranks of this process, some
// at a time: with where they begin in the whole, logical tensor. They are `fn`'s to change, copies
// that stay until it returns. Over all processes each value comes once.
void ForEachRunHere(const Executor& executor, const HeldTensor& tensor,
                    absl::FunctionRef<void(int64_t whole, absl::Span<float> values)> fn);

// How many values those are.
int64_t CountValuesHere(const Executor& executor, const HeldTensor& tensor);

// Copies these values to the begin of `to`, with the threads of `parallel`; how many. They come
// back in ForEachRunOfCopy, which calls `fn` as ForEachRunHere did when they were copied.
int64_t CopyValuesHere(const Executor& executor, const HeldTensor& tensor, Parallel& parallel,
                       absl::Span<float> to);
int64_t ForEachRunOfCopy(const Executor& executor, const HeldTensor& tensor, absl::Span<float> copy,
                         absl::FunctionRef<void(int64_t whole, absl::Span<float> values)> fn);

// Takes a run of values that ranks here hold: where it begins in the whole tensor, and room for it.
// `counts`: over all processes, ranks and holders each value counts once.
using FillFunction =
    absl::FunctionRef<absl::Status(int64_t whole, absl::Span<float> values, bool counts)>;

// Lets `fill` write all values of a tensor that ranks of this process hold, once for all of them;
// ends with its first error. What is padding in the tiles is left as it is. Of a quantized tensor
// it is asked twice: for the whole of it first, of which nothing counts, for the largest of each
// channel.
absl::Status FillRunsHere(const HeldTensor& tensor, Executor& executor, FillFunction fill);

// All parameters, or their gradients, in the order of the plan's stages, of a run in one process.
// FailedPrecondition of a run in several, when the plan keeps no gradients, or does not report what
// makes their sums means, or holds weights as whole numbers.
absl::StatusOr<std::vector<LogicalTensor>> GatherTensors(const Executor& executor, TensorRole role);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_PARAMETERS_H_
