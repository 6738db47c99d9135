// How kernels over plain arrays become kernels of ops (kernels/kernel.h). The families are those of
// graph/ops: one folder for each, whose <family>_op.cc lists its entries; cpu_kernels.cc joins the
// lists.
#ifndef MGC_KERNELS_CPU_ADAPT_H_
#define MGC_KERNELS_CPU_ADAPT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "kernels/spec.h"

namespace mgc::cpu {

// What one run does (loops over plain arrays, which cannot fail), and the bytes of scratch it needs
// at a width.
using RunFunction = std::function<void(const KernelRun&, Parallel&)>;
using WorkspaceFunction = std::function<int64_t(int width)>;

// A kernel that runs `run` and then zeroes what its results hold beyond the valid pieces of padded
// dims, as every op's meaning does.
std::unique_ptr<Kernel> MakeKernel(const KernelSpec& spec, RunFunction run,
                                   WorkspaceFunction workspace = nullptr);

inline const float* X(const KernelRun& run, int i) { return In<float>(run, i); }
inline float* Y(const KernelRun& run, int i) { return Out<float>(run, i); }
inline float* Scratch(const KernelRun& run) { return static_cast<float*>(run.workspace); }

// Elementwise kernels: y[i] of x[i], or of a[i] and b[i].
template <class T>
using UnaryKernel = void (*)(Parallel&, int64_t, const T*, T*);
template <class T>
using BinaryKernel = void (*)(Parallel&, int64_t, const T*, const T*, T*);

template <class T>
KernelOr MakeUnary(const KernelSpec& spec, UnaryKernel<T> kernel) {
  return MakeKernel(spec, [kernel, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    kernel(parallel, n, In<T>(run, 0), Out<T>(run, 0));
  });
}
template <class T>
KernelOr MakeBinary(const KernelSpec& spec, BinaryKernel<T> kernel) {
  return MakeKernel(spec, [kernel, n = OutSize(spec, 0)](const KernelRun& run, Parallel& parallel) {
    kernel(parallel, n, In<T>(run, 0), In<T>(run, 1), Out<T>(run, 0));
  });
}

// A result that is its operand, of any type.
KernelOr MakeCopy(const KernelSpec& spec);

// Copies `bytes` bytes; does nothing where they are already in place.
void CopyBytes(Parallel& parallel, int64_t bytes, const void* from, void* to);

// The lists of the families.
absl::Span<const KernelEntry> ActivationKernels();
absl::Span<const KernelEntry> AttentionKernels();
absl::Span<const KernelEntry> ElementwiseKernels();
absl::Span<const KernelEntry> EmbeddingKernels();
absl::Span<const KernelEntry> IdentityKernels();
absl::Span<const KernelEntry> LocalMoveKernels();
absl::Span<const KernelEntry> LossKernels();
absl::Span<const KernelEntry> MatmulKernels();
absl::Span<const KernelEntry> MovementKernels();
absl::Span<const KernelEntry> NormKernels();
absl::Span<const KernelEntry> OptimizerKernels();
absl::Span<const KernelEntry> PositionKernels();
absl::Span<const KernelEntry> ReduceKernels();
absl::Span<const KernelEntry> RopeKernels();
absl::Span<const KernelEntry> SoftmaxKernels();

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_ADAPT_H_
