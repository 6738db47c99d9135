#include "kernels/shared/movement_spec.h"

#include <cstddef>

#include "kernels/spec.h"

namespace mgc {
namespace {

// A dim cut out of a tensor: `outer` blocks of the dim's size times `inner` bytes.
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

}  // namespace

Transposition TranspositionOf(const KernelSpec& spec) {
  const std::vector<int64_t>& to = spec.output_shapes[0];
  const std::vector<int64_t> from = RowMajorStrides(spec.input_shapes[0]);
  const std::vector<int64_t> perm = spec.attrs.Ints("perm");
  Transposition t;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 1) continue;
    const int64_t stride = from[static_cast<size_t>(perm[d])];
    if (!t.extents.empty() && t.strides.back() == to[d] * stride) {
      t.extents.back() *= to[d];
      t.strides.back() = stride;
    } else {
      t.extents.push_back(to[d]);
      t.strides.push_back(stride);
    }
  }
  return t;
}

BlockCopy SliceOf(const KernelSpec& spec) {
  const Blocks b = BlocksOf(spec, spec.input_shapes[0]);
  const int64_t whole = spec.input_shapes[0][static_cast<size_t>(spec.attrs.Int("dim"))];
  const int64_t begin = spec.attrs.Int("begin"), count = spec.attrs.Int("end") - begin;
  const int64_t bytes = count * b.inner;
  return {b.outer, bytes, begin * b.inner, whole * b.inner, 0, bytes};
}

std::vector<BlockCopy> ConcatOf(const KernelSpec& spec) {
  const Blocks b = BlocksOf(spec, spec.output_shapes[0]);
  const size_t dim = static_cast<size_t>(spec.attrs.Int("dim"));
  const int64_t whole = spec.output_shapes[0][dim] * b.inner;
  std::vector<BlockCopy> copies;
  int64_t to = 0;
  for (const std::vector<int64_t>& shape : spec.input_shapes) {
    const int64_t bytes = shape[dim] * b.inner;
    copies.push_back({b.outer, bytes, 0, bytes, to, whole});
    to += bytes;
  }
  return copies;
}

}  // namespace mgc
