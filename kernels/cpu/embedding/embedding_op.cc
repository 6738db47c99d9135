// Embedding tables.
#include <cstdint>

#include "kernels/cpu/adapt.h"
#include "kernels/cpu/embedding/embedding.h"
#include "kernels/shared/embedding_spec.h"

namespace mgc::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);

KernelOr MakeLookup(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [table = TableShapeOf(spec), n = InSize(spec, 1)](const KernelRun& run,
                                                                              Parallel& parallel) {
      Lookup(parallel, table, In<T>(run, 0), n, In<int64_t>(run, 1), Out<T>(run, 0));
    });
  });
}

KernelOr MakeLookupGrad(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = InSize(spec, 1);
    return MakeKernel(
        spec, [n, table = TableShapeOf(spec)](const KernelRun& run, Parallel& parallel) {
          LookupGrad(parallel, table, n, In<int64_t>(run, 1), In<T>(run, 2), false, Y(run, 0));
        });
  });
}

KernelOr MakeLookupGradAccumulate(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    const int64_t n = InSize(spec, 1);
    const int64_t bytes = OutSize(spec, 0) * kFloat;
    return MakeKernel(
        spec, [=, table = TableShapeOf(spec)](const KernelRun& run, Parallel& parallel) {
          CopyBytes(parallel, bytes, In<char>(run, 0), Out<char>(run, 0));
          LookupGrad(parallel, table, n, In<int64_t>(run, 1), In<T>(run, 2), true, Y(run, 0));
        });
  });
}

KernelOr MakeWriteRows(const KernelSpec& spec) {
  return ForElements(spec, [&](auto zero) -> KernelOr {
    using T = decltype(zero);
    return MakeKernel(spec, [shape = WrittenRowsOf(spec)](const KernelRun& run,
                                                          Parallel& parallel) {
      WriteRows(parallel, shape, In<T>(run, 0), In<T>(run, 1), In<int64_t>(run, 2), Out<T>(run, 0));
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

}  // namespace mgc::cpu
