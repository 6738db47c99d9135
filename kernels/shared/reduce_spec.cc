#include "kernels/shared/reduce_spec.h"

#include <algorithm>

#include "kernels/spec.h"

namespace mgc {
namespace {

bool Contains(const std::vector<int64_t>& dims, size_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
}

}  // namespace

Box Merged(const Box& box) {
  Box merged;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    if (box.extents[d] == 1) continue;
    const bool joins =
        !merged.extents.empty() && merged.strides.back() == box.extents[d] * box.strides[d];
    if (joins) {
      merged.extents.back() *= box.extents[d];
      merged.strides.back() = box.strides[d];
    } else {
      merged.extents.push_back(box.extents[d]);
      merged.strides.push_back(box.strides[d]);
    }
  }
  return merged;
}

Reduction ReductionOf(const KernelSpec& spec) {
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const std::vector<int64_t> dims = spec.attrs.Ints("dims");
  Reduction r;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = Contains(dims, d);
    const size_t factor = static_cast<size_t>(spec.rule.operands[0][d][0]);
    Box& box = reduced ? r.reduced : r.kept;
    box.extents.push_back(reduced ? spec.pieces[factor].valid : shape[d]);
    box.strides.push_back(strides[d]);
  }
  return r;
}

bool IsOneRun(const KernelSpec& spec, int64_t* outer, int64_t* reduced, int64_t* inner) {
  const std::vector<int64_t>& shape = spec.input_shapes[0];
  const std::vector<int64_t> dims = spec.attrs.Ints("dims");
  *outer = *reduced = *inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool before = dims.empty() || static_cast<int64_t>(d) < dims.front();
    *(Contains(dims, d) ? reduced : before ? outer : inner) *= shape[d];
  }
  return dims.empty() || dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
}

bool ReducesLastDim(const KernelSpec& spec) {
  const std::vector<int64_t> dims = spec.attrs.Ints("dims");
  return dims.size() == 1 && dims[0] + 1 == static_cast<int64_t>(spec.input_shapes[0].size());
}

Box BroadcastBox(const KernelSpec& spec) {
  const std::vector<int64_t>& shape = spec.output_shapes[0];
  const std::vector<int64_t> made = spec.attrs.Ints("dims");
  Box box = {shape, std::vector<int64_t>(shape.size(), 0)};
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (Contains(made, d)) continue;
    box.strides[d] = stride;
    stride *= shape[d];
  }
  return box;
}

}  // namespace mgc
