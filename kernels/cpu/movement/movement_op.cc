// Ops that move elements, and positions. Elements are moved as bytes, so that every type is served.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/adapt.h"
#include "kernels/shared/movement_spec.h"

namespace mgc::cpu {
namespace {

// Rows of the result are made one by one: their last dim steps through the operand.
template <class T>
KernelOr MakeTransposeOf(const KernelSpec& spec) {
  Transposition t = TranspositionOf(spec);
  int64_t cols = 1, step = 0;
  if (!t.extents.empty()) {
    cols = t.extents.back();
    step = t.strides.back();
    t.extents.pop_back();
    t.strides.pop_back();
  }
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    const int64_t grain = std::max<int64_t>(8192 / std::max<int64_t>(cols, 1), 1);
    parallel.For(NumElements(t.extents), grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = In<T>(run, 0);
        int64_t rest = r;
        for (size_t d = t.extents.size(); d-- > 0;) {
          from += rest % t.extents[d] * t.strides[d];
          rest /= t.extents[d];
        }
        T* to = Out<T>(run, 0) + r * cols;
        for (int64_t c = 0; c < cols; ++c) to[c] = from[c * step];
      }
    });
  });
}

KernelOr MakeTranspose(const KernelSpec& spec) {
  switch (spec.output_types[0].dtype) {
    case DType::kF32:
      return MakeTransposeOf<uint32_t>(spec);
    case DType::kF64:
    case DType::kI64:
      return MakeTransposeOf<uint64_t>(spec);
    case DType::kBF16:
    case DType::kF16:
      return MakeTransposeOf<uint16_t>(spec);
    case DType::kI8:
      break;
  }
  return NoKernel(spec);
}

void CopyBlocks(Parallel& parallel, const BlockCopy& copy, const char* from, char* to) {
  const int64_t grain = std::max<int64_t>(65536 / std::max<int64_t>(copy.bytes, 1), 1);
  parallel.For(copy.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      std::memcpy(to + copy.to + o * copy.to_step, from + copy.from + o * copy.from_step,
                  static_cast<size_t>(copy.bytes));
    }
  });
}

KernelOr MakeSlice(const KernelSpec& spec) {
  return MakeKernel(spec, [copy = SliceOf(spec)](const KernelRun& run, Parallel& parallel) {
    CopyBlocks(parallel, copy, In<char>(run, 0), Out<char>(run, 0));
  });
}

KernelOr MakeConcat(const KernelSpec& spec) {
  return MakeKernel(spec, [copies = ConcatOf(spec)](const KernelRun& run, Parallel& parallel) {
    for (size_t k = 0; k < copies.size(); ++k) {
      CopyBlocks(parallel, copies[k], In<char>(run, static_cast<int>(k)), Out<char>(run, 0));
    }
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

}  // namespace mgc::cpu
