#include "kernels/shared/dropout_spec.h"

#include <cstddef>
#include <vector>

#include "graph/base/random.h"
#include "kernels/spec.h"

namespace mgc {

absl::StatusOr<DropoutUse> DropoutUseOf(const KernelSpec& spec) {
  const TensorFactors& dims = spec.rule.results[0];
  const std::vector<int64_t>& shape = spec.output_shapes[0];
  const bool placed = shape.size() == dims.size() && shape.size() <= IndexGrid::kMaxRank;
  if (!placed) return NoKernel(spec);
  std::vector<int64_t> whole;
  for (const DimFactors& dim : dims) {
    whole.push_back(spec.rule.factors[static_cast<size_t>(dim[0])].size);
  }
  const std::vector<int64_t> strides = RowMajorStrides(whole);
  const int batch = BatchFactor(spec);
  DropoutUse use;
  IndexGrid grid;
  grid.rank = static_cast<int>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    grid.size[d] = shape[d];
    grid.stride[d] = strides[d];
    const uint64_t stride = static_cast<uint64_t>(strides[d]);
    grid.base += static_cast<uint64_t>(spec.pieces[static_cast<size_t>(dims[d][0])].begin) * stride;
    if (dims[d][0] == batch) use.sample_stride = stride;
  }
  use.grid = grid.Merged();
  use.rule = MakeDropoutRule(spec.attrs.Real("p"), {spec.seed, StreamOf(spec.attrs.Text("key"))});
  return use;
}

}  // namespace mgc
