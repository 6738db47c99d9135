// Ops that leave elements as they are or drop some, constants and positions.
#include <cstdint>

#include "graph/random.h"
#include "kernels/cpu/adapt.h"

namespace mgc::cpu {
namespace {

KernelOr MakeCopy(const KernelSpec& spec) {
  if (spec.input_types[0].dtype != spec.output_types[0].dtype) return NoKernel(spec);
  const int64_t bytes = OutSize(spec, 0) * SizeOf(spec.output_types[0].dtype);
  return MakeKernel(spec, [bytes](const KernelRun& run, Parallel& parallel) {
    CopyBytes(parallel, bytes, In<char>(run, 0), Out<char>(run, 0));
  });
}

KernelOr MakeConstant(const KernelSpec& spec) {
  return MakeKernel(spec, [value = spec.attrs.Real("value")](const KernelRun& run, Parallel&) {
    *Out<double>(run, 0) = value;
  });
}

KernelOr MakeStack(const KernelSpec& spec) {
  if (!AllAre(spec, DType::kF64)) return NoKernel(spec);
  return MakeKernel(spec, [](const KernelRun& run, Parallel&) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      Out<double>(run, 0)[i] = *In<double>(run, static_cast<int>(i));
    }
  });
}

KernelOr MakeIota(const KernelSpec& spec) {
  const int64_t begin = PieceNamed(spec, "n").begin;
  const bool samples = BatchFactor(spec) >= 0;
  return MakeKernel(spec, [=, n = OutSize(spec, 0)](const KernelRun& run, Parallel&) {
    const int64_t first = begin + (samples ? run.first_sample : 0);
    for (int64_t i = 0; i < n; ++i) Out<int64_t>(run, 0)[i] = first + i;
  });
}

// Indices count the elements of the whole tensor row-major, modulo 2^64.
KernelOr MakeDropout(const KernelSpec& spec) {
  const TensorFactors& dims = spec.rule.results[0];
  const std::vector<int64_t>& shape = spec.output_shapes[0];
  const bool placed = shape.size() == dims.size() && shape.size() <= IndexGrid::kMaxRank;
  if (!AllAre(spec, DType::kF32) || !placed) return NoKernel(spec);
  std::vector<int64_t> whole;
  for (const DimFactors& dim : dims) {
    whole.push_back(spec.rule.factors[static_cast<size_t>(dim[0])].size);
  }
  const std::vector<int64_t> strides = DenseStridesOf(whole);
  const int batch = BatchFactor(spec);
  IndexGrid grid;
  grid.rank = static_cast<int>(shape.size());
  uint64_t sample_stride = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    grid.size[d] = shape[d];
    grid.stride[d] = strides[d];
    const uint64_t stride = static_cast<uint64_t>(strides[d]);
    grid.base += static_cast<uint64_t>(spec.pieces[static_cast<size_t>(dims[d][0])].begin) * stride;
    if (dims[d][0] == batch) sample_stride = stride;
  }
  const RandomStream stream = {spec.seed, StreamOf(spec.attrs.Text("key"))};
  const double p = spec.attrs.Real("p");
  return MakeKernel(spec, [=](const KernelRun& run, Parallel& parallel) {
    IndexGrid here = grid;
    here.base += static_cast<uint64_t>(run.first_sample) * sample_stride;
    Dropout(parallel, stream, here, p, X(run, 0), Y(run, 0));
  });
}

}  // namespace

absl::Span<const KernelEntry> IdentityKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"constant", MakeConstant},  {"dropout", MakeDropout}, {"iota", MakeIota},
      {"reshape", MakeCopy},       {"reshard", MakeCopy},    {"stack", MakeStack},
      {"stop_gradient", MakeCopy},
  };
  return kEntries;
}

}  // namespace mgc::cpu
