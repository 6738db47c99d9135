// Ops that move elements. Elements are moved as bytes, so that every type is served.
#include <cstddef>
#include <vector>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/shared/movement_spec.h"

namespace mgc::cuda {
namespace {

// Bytes of an element of a type that the table knows; 0 of others.
int ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kI8:
      return 1;
  }
  return 0;
}

KernelOr MakeTranspose(const KernelSpec& spec) {
  const Transposition t = TranspositionOf(spec);
  const int bytes = ElementBytes(spec.output_types[0].dtype);
  if (t.extents.size() > TransposedDims::kMaxRank || bytes == 0) return NoKernel(spec);
  TransposedDims dims;
  dims.rank = static_cast<int>(t.extents.size());
  for (size_t d = 0; d < t.extents.size(); ++d) {
    dims.extent[d] = t.extents[d];
    dims.stride[d] = t.strides[d];
  }
  return MakeKernel(spec, [dims, bytes](const KernelRun& run, Stream stream) {
    return Transpose(stream, dims, bytes, In<char>(run, 0), Out<char>(run, 0));
  });
}

int Issue(Stream stream, const BlockCopy& copy, const char* from, char* to) {
  return CopyBlocks(stream, copy.outer, copy.bytes, from + copy.from, copy.from_step, to + copy.to,
                    copy.to_step);
}

KernelOr MakeSlice(const KernelSpec& spec) {
  return MakeKernel(spec, [copy = SliceOf(spec)](const KernelRun& run, Stream stream) {
    return Issue(stream, copy, In<char>(run, 0), Out<char>(run, 0));
  });
}

KernelOr MakeConcat(const KernelSpec& spec) {
  return MakeKernel(spec, [copies = ConcatOf(spec)](const KernelRun& run, Stream stream) {
    int error = 0;
    for (size_t k = 0; k < copies.size() && error == 0; ++k) {
      error = Issue(stream, copies[k], In<char>(run, static_cast<int>(k)), Out<char>(run, 0));
    }
    return error;
  });
}

}  // namespace

absl::Span<const KernelEntry> MovementKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"concat", MakeConcat},
      {"reshape", MakeCopy},
      {"slice", MakeSlice},
      {"transpose", MakeTranspose},
  };
  return kEntries;
}

}  // namespace mgc::cuda
