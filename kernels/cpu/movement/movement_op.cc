// Ops that move elements, and positions. Elements are moved as bytes, so that every type is served.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

// Rows of the result of a transpose: their last dim steps through the operand by `step` elements.
struct Transposition {
  std::vector<int64_t> extents, strides;  // of the dims before the last
  int64_t cols, step;
};

Transposition TranspositionOf(const KernelSpec& spec) {
  const std::vector<int64_t> from = RowMajorStrides(spec.input_shapes[0]);
  Transposition t = {spec.output_shapes[0], {}, 1, 0};
  for (int64_t dim : spec.attrs.Ints("perm")) t.strides.push_back(from[static_cast<size_t>(dim)]);
  if (!t.extents.empty()) {
    t.cols = t.extents.back();
    t.step = t.strides.back();
    t.extents.pop_back();
    t.strides.pop_back();
  }
  return t;
}

template <class T>
KernelOr MakeTransposeOf(const KernelSpec& spec) {
  const Transposition t = TranspositionOf(spec);
  return MakeKernel(spec, [t](const KernelRun& run, Parallel& parallel) {
    const int64_t grain = std::max<int64_t>(8192 / std::max<int64_t>(t.cols, 1), 1);
    parallel.For(NumElements(t.extents), grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = In<T>(run, 0);
        int64_t rest = r;
        for (size_t d = t.extents.size(); d-- > 0;) {
          from += rest % t.extents[d] * t.strides[d];
          rest /= t.extents[d];
        }
        T* to = Out<T>(run, 0) + r * t.cols;
        for (int64_t c = 0; c < t.cols; ++c) to[c] = from[c * t.step];
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
  }
  return NoKernel(spec);
}

// A dim cut out of a tensor: `outer` blocks of `dim` times `inner` bytes.
struct Blocks {
  int64_t outer, inner;
};

Blocks BlocksOf(const KernelSpec& spec, const std::vector<int64_t>& shape) {
  const size_t dim = static_cast<size_t>(spec.attrs.Int("dim"));
  Blocks b = {1, SizeOf(spec.output_types[0].dtype)};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d < dim) b.outer *= shape[d];
    if (d > dim) b.inner *= shape[d];
  }
  return b;
}

// Copies `bytes` bytes in each of `outer` blocks, whose starts are `from_step` and `to_step` bytes
// apart.
void CopyBlocks(Parallel& parallel, int64_t outer, int64_t bytes, const char* from,
                int64_t from_step, char* to, int64_t to_step) {
  const int64_t grain = std::max<int64_t>(65536 / std::max<int64_t>(bytes, 1), 1);
  parallel.For(outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      std::memcpy(to + o * to_step, from + o * from_step, static_cast<size_t>(bytes));
    }
  });
}

KernelOr MakeSlice(const KernelSpec& spec) {
  const Blocks b = BlocksOf(spec, spec.input_shapes[0]);
  const int64_t whole = spec.input_shapes[0][static_cast<size_t>(spec.attrs.Int("dim"))];
  const int64_t begin = spec.attrs.Int("begin"), count = spec.attrs.Int("end") - begin;
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    CopyBlocks(parallel, b.outer, count * b.inner, In<char>(run, 0) + begin * b.inner,
               whole * b.inner, Out<char>(run, 0), count * b.inner);
  });
}

KernelOr MakeConcat(const KernelSpec& spec) {
  const Blocks b = BlocksOf(spec, spec.output_shapes[0]);
  const size_t dim = static_cast<size_t>(spec.attrs.Int("dim"));
  const int64_t whole = spec.output_shapes[0][dim];
  std::vector<int64_t> counts;
  for (const std::vector<int64_t>& shape : spec.input_shapes) counts.push_back(shape[dim]);
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    char* to = Out<char>(run, 0);
    for (size_t k = 0; k < counts.size(); ++k) {
      const int64_t bytes = counts[k] * b.inner;
      CopyBlocks(parallel, b.outer, bytes, In<char>(run, static_cast<int>(k)), bytes, to,
                 whole * b.inner);
      to += bytes;
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
