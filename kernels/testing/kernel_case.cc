#include "kernels/testing/kernel_case.h"

#include <utility>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"

namespace mgc {
namespace {

bool PlaceMatters(const OpDef& op, const Factor& factor) {
  for (const std::string& name : op.offset_factors) {
    if (name == factor.name || (name == "..." && factor.name[0] == '.')) return true;
  }
  return false;
}

}  // namespace

KernelSpec SpecOf(const BoundCase& c, const Place& place) {
  KernelSpec spec;
  spec.op = c.op;
  spec.attrs = c.op_case->attrs;
  spec.rule = c.rule;
  spec.seed = 99;
  for (Factor& factor : spec.rule.factors) {
    const int64_t room = (factor.size + factor.multiple - 1) / factor.multiple * factor.multiple;
    DimPiece piece = {0, factor.size, room};
    if (static_cast<int>(spec.pieces.size()) == place.padded) piece.room += 2;
    if (place.shifted && PlaceMatters(*c.op, factor)) {
      piece.begin = factor.size;
      factor.size *= 2;
    }
    spec.pieces.push_back(piece);
  }
  if (place.empty) {
    DimPiece& piece = spec.pieces[static_cast<size_t>(place.padded)];
    piece = {piece.valid, 0, piece.room};
  }
  // Samples are the outermost dim of the first result, where its place matters but is no id.
  if (place.first_sample > 0 && !spec.rule.results[0].empty()) {
    Factor& outermost = spec.rule.factors[static_cast<size_t>(spec.rule.results[0][0][0])];
    if (PlaceMatters(*c.op, outermost) && outermost.name != "v") outermost.dim_name = kSampleDim;
  }
  const auto shape_of = [&spec](const TensorFactors& factors) {
    std::vector<int64_t> shape;
    for (const DimFactors& dim : factors) {
      shape.push_back(1);
      for (int f : dim) shape.back() *= spec.pieces[static_cast<size_t>(f)].room;
    }
    return shape;
  };
  for (size_t i = 0; i < c.operands.size(); ++i) {
    spec.input_types.push_back(c.operands[i].type);
    spec.input_shapes.push_back(shape_of(c.rule.operands[i]));
  }
  for (size_t r = 0; r < c.results.size(); ++r) {
    spec.output_types.push_back(c.results[r]);
    spec.output_shapes.push_back(shape_of(c.rule.results[r]));
  }
  return spec;
}

const std::map<std::string, KernelFactory>& CpuFactories() {
  static const std::map<std::string, KernelFactory> factories = [] {
    std::map<std::string, KernelFactory> made;
    for (const KernelEntry& entry : CpuKernels()) made[entry.op] = entry.make;
    return made;
  }();
  return factories;
}

}  // namespace mgc
