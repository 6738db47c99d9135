#include "kernels/spec.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {

std::vector<Padding> PaddingOf(const KernelSpec& spec) {
  std::vector<Padding> paddings;
  for (size_t r = 0; r < spec.output_shapes.size(); ++r) {
    const std::vector<int64_t>& shape = spec.output_shapes[r];
    if (shape.size() != spec.rule.results[r].size()) continue;  // a flat piece of a tile
    const std::vector<int64_t> strides = RowMajorStrides(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      const DimFactors& factors = spec.rule.results[r][d];
      if (factors.size() != 1) continue;
      const int64_t valid = spec.pieces[static_cast<size_t>(factors[0])].valid;
      if (valid >= shape[d]) continue;
      const int64_t bytes = strides[d] * SizeOf(spec.output_types[r].dtype);
      const int64_t block = shape[d] * bytes;
      const int64_t outer = OutSize(spec, static_cast<int>(r)) / (strides[d] * shape[d]);
      paddings.push_back({static_cast<int>(r), outer, block, valid * bytes, block});
    }
  }
  return paddings;
}

absl::Status NoKernel(const KernelSpec& spec) {
  return absl::UnimplementedError(
      absl::StrCat("there is no kernel of ", spec.op->name, " for these types"));
}

bool AllAre(const KernelSpec& spec, DType dtype) {
  const auto fit = [&](const std::vector<TensorType>& types, auto is_wide) {
    for (size_t i = 0; i < types.size(); ++i) {
      const bool is_scalar = types[i].dtype == DType::kF64 && types[i].dims.empty();
      const bool fits = types[i].dtype == (is_wide(*spec.op, i) ? WideOf(dtype) : dtype);
      const bool is_quantized = types[i].dtype == DType::kI8;
      if (!fits && IsReal(types[i].dtype) && !is_scalar && !is_quantized) return false;
    }
    return true;
  };
  return fit(spec.input_types, IsWideOperand) && fit(spec.output_types, IsWideResult);
}

int64_t InSize(const KernelSpec& spec, int i) {
  return NumElements(spec.input_shapes[static_cast<size_t>(i)]);
}
int64_t OutSize(const KernelSpec& spec, int i) {
  return NumElements(spec.output_shapes[static_cast<size_t>(i)]);
}
int64_t LastDim(const std::vector<int64_t>& shape) { return shape.empty() ? 1 : shape.back(); }
int64_t LeadingDims(const std::vector<int64_t>& shape) {
  return shape.empty() ? 1 : NumElements(absl::MakeSpan(shape).first(shape.size() - 1));
}

int64_t WorkspaceBoundOf(const KernelSpec& spec, KernelHost host) {
  const auto tiles = [](const std::vector<TensorType>& types,
                        const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<TensorType> made;
    for (size_t i = 0; i < types.size(); ++i) {
      made.push_back({types[i].dtype, {}});
      for (int64_t size : shapes[i]) made.back().dims.push_back({size, "", 1});
    }
    return made;
  };
  const auto pointers = [](const std::vector<TensorType>& types) {
    std::vector<const TensorType*> made;
    made.reserve(types.size());
    for (const TensorType& type : types) made.push_back(&type);
    return made;
  };
  const std::vector<TensorType> inputs = tiles(spec.input_types, spec.input_shapes);
  const std::vector<TensorType> outputs = tiles(spec.output_types, spec.output_shapes);
  const auto operands = pointers(inputs), results = pointers(outputs);
  return WorkspaceOf(*spec.op, OpUse{spec.attrs, operands, results}, host);
}

const DimPiece& PieceNamed(const KernelSpec& spec, const char* factor) {
  const int index = spec.rule.Find(factor);
  MGC_CHECK(index >= 0) << spec.op->name << " has no factor " << factor;
  return spec.pieces[static_cast<size_t>(index)];
}

int64_t WholeSize(const KernelSpec& spec, const char* factor) {
  const int index = spec.rule.Find(factor);
  MGC_CHECK(index >= 0) << spec.op->name << " has no factor " << factor;
  return spec.rule.factors[static_cast<size_t>(index)].size;
}

int BatchFactor(const KernelSpec& spec) {
  for (size_t f = 0; f < spec.rule.factors.size(); ++f) {
    if (spec.rule.factors[f].dim_name == kSampleDim) return static_cast<int>(f);
  }
  return -1;
}

}  // namespace mgc
