// How launches of device code become kernels of ops (kernels/kernel.h). The families are those of
// graph/ops: one folder for each, whose <family>_op.cc lists its entries and includes no CUDA, and
// whose <family>.cu.cc has the device code; cuda_kernels.cc joins the lists.

#ifndef MGC_KERNELS_CUDA_ADAPT_H_
#define MGC_KERNELS_CUDA_ADAPT_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/cuda/f32_products.h"
#include "kernels/cuda/launch_shape.h"
#include "kernels/spec.h"

namespace mgc::cuda {

// Issues one run to a stream. 0, or the cudaError_t of what could not be issued; what goes wrong
// when it runs is the device's to tell.
using IssueFunction = std::function<int(const KernelRun& run, Stream stream)>;

// A kernel that issues `issue`, and then zeros for what its results hold beyond the valid pieces of
// padded dims, as every op's meaning has them.
std::unique_ptr<Kernel> MakeKernel(const KernelSpec& spec, IssueFunction issue,
                                   int64_t workspace_bytes = 0);

// OK, or that `what` was not launched, by its cudaError_t.
absl::Status LaunchStatus(int error, absl::string_view what);

// A result that is its operand, of any type.
KernelOr MakeCopy(const KernelSpec& spec);

inline SamplePlace SampleOf(const KernelRun& run) { return {run.step_sample, run.sample_in_step}; }

// The lists of the families.
absl::Span<const KernelEntry> ActivationKernels();
absl::Span<const KernelEntry> AttentionKernels();
absl::Span<const KernelEntry> ElementwiseKernels();
absl::Span<const KernelEntry> EmbeddingKernels();
absl::Span<const KernelEntry> IdentityKernels();
absl::Span<const KernelEntry> LocalMoveKernels();
absl::Span<const KernelEntry> LossKernels();
absl::Span<const KernelEntry> MatmulKernels(F32Products f32);
absl::Span<const KernelEntry> MovementKernels();
absl::Span<const KernelEntry> NormKernels();
absl::Span<const KernelEntry> OptimizerKernels();
absl::Span<const KernelEntry> PositionKernels();
absl::Span<const KernelEntry> ReduceKernels();
absl::Span<const KernelEntry> RopeKernels();
absl::Span<const KernelEntry> SoftmaxKernels();

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_ADAPT_H_
