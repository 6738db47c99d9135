// What kernels of all backends ask of a use of an op (KernelSpec).

#ifndef MGC_KERNELS_SPEC_H_
#define MGC_KERNELS_SPEC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/kernel.h"

namespace mgc {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// The error of a factory whose types it has no kernel for.
absl::Status NoKernel(const KernelSpec& spec);

// Whether all real operands and results, scalars of f64 beside them apart, are of `dtype`; what is
// wide in the op (OpDef::wide_operands) of the wide type beside it.
bool AllAre(const KernelSpec& spec, DType dtype);

// The kernel that `make` makes for the element type that the operands share, by a value of it: of
// float, Bfloat16 or Float16.
template <class Make>
KernelOr ForElements(const KernelSpec& spec, const Make& make) {
  if (AllAre(spec, DType::kF32)) return make(float());
  if (AllAre(spec, DType::kBF16)) return make(Bfloat16());
  if (AllAre(spec, DType::kF16)) return make(Float16());
  return NoKernel(spec);
}

template <class T>
const T* In(const KernelRun& run, int i) {
  return static_cast<const T*>(run.inputs[static_cast<size_t>(i)]);
}
template <class T>
T* Out(const KernelRun& run, int i) {
  return static_cast<T*>(run.outputs[static_cast<size_t>(i)]);
}

// Elements of a tile, of its last dim, and of the dims before it.
int64_t InSize(const KernelSpec& spec, int i);
int64_t OutSize(const KernelSpec& spec, int i);
int64_t LastDim(const std::vector<int64_t>& shape);
int64_t LeadingDims(const std::vector<int64_t>& shape);

// Bytes of scratch that the op allows: a processor's kernel for each thread, a GPU's as a whole.
int64_t WorkspaceBoundOf(const KernelSpec& spec, KernelHost host);

// The piece and the whole size of a factor that the rule names.
const DimPiece& PieceNamed(const KernelSpec& spec, const char* factor);
int64_t WholeSize(const KernelSpec& spec, const char* factor);

// The factor of the samples, which `first_sample` shifts; -1 where there is none.
int BatchFactor(const KernelSpec& spec);

// Room beyond the valid piece of one dim of one result: in each of `outer` blocks, bytes [begin,
// end). Every op's meaning has zeros there.
struct Padding {
  int result;
  int64_t outer, block, begin, end;
};
std::vector<Padding> PaddingOf(const KernelSpec& spec);

}  // namespace mgc

#endif  // MGC_KERNELS_SPEC_H_
