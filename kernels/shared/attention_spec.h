// From a use of an attention op to the numbers its kernels take, for the adapters of all backends.

#ifndef MGC_KERNELS_SHARED_ATTENTION_SPEC_H_
#define MGC_KERNELS_SHARED_ATTENTION_SPEC_H_

#include <cstddef>
#include <cstdint>

#include "kernels/shared/attention_shape.h"
#include "kernels/spec.h"

namespace mgc {

// `q` and `k` are the places of these operands.
AttentionShape AttentionShapeOf(const KernelSpec& spec, size_t q, size_t k);

// Positions, the first of them operand `at`, and the segments behind them where the op has any.
AttentionPositions PositionsOf(const KernelRun& run, int at, bool segments);

// The logical index of a pair counts sample, head, query and key of the whole tensors; heads are
// groups of key-value heads. `base` is that of the tile without first_sample.
AttentionDropout AttentionDropoutOf(const KernelSpec& spec);

// Logical index steps from one sample of the global batch to the next.
uint64_t SampleStride(const KernelSpec& spec, const AttentionDropout& dropout);

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_ATTENTION_SPEC_H_
