// Embedding tables.
#include <cstdint>
#include <limits>

#include "kernels/cuda/adapt.h"
#include "kernels/cuda/embedding/embedding.h"
#include "kernels/shared/embedding_spec.h"

namespace mgc::cuda {
namespace {

KernelOr MakeLookup(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [table = TableShapeOf(spec), n = InSize(spec, 1)](const KernelRun& run,
                                                                              Stream stream) {
      return Lookup(stream, table, In<T>(run, 0), n, In<int64_t>(run, 1), Out<T>(run, 0));
    });
  });
}

// The gradient is added to operand 0, or to zeros.
KernelOr MakeGrad(const KernelSpec& spec, bool accumulate) {
  const int64_t n = InSize(spec, 1);
  if (n > std::numeric_limits<int32_t>::max()) return NoKernel(spec);
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [=, table = TableShapeOf(spec)](const KernelRun& run, Stream stream) {
      const float* const initial = accumulate ? In<float>(run, 0) : nullptr;
      return LookupGrad(stream, table, n, In<int64_t>(run, 1), In<T>(run, 2), initial,
                        Out<float>(run, 0));
    });
  });
}

KernelOr MakeLookupGrad(const KernelSpec& spec) { return MakeGrad(spec, false); }
KernelOr MakeLookupGradAccumulate(const KernelSpec& spec) { return MakeGrad(spec, true); }

KernelOr MakeWriteRows(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [shape = WrittenRowsOf(spec)](const KernelRun& run, Stream stream) {
      return WriteRows(stream, shape, In<T>(run, 0), In<T>(run, 1), In<int64_t>(run, 2),
                       Out<T>(run, 0));
    });
  });
}

}  // namespace

absl::Span<const KernelEntry> EmbeddingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"lookup", MakeLookup},
      {"lookup_grad", MakeLookupGrad},
      {"lookup_grad_accumulate", MakeLookupGradAccumulate},
      {"write_rows", MakeWriteRows},
  };
  return kEntries;
}

}  // namespace mgc::cuda
