#include "kernels/cpu/adapt.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc::cpu {
namespace {

// Room beyond the valid piece of one dim of one result: in each of `outer` blocks, bytes [begin,
// end).
struct Padding {
  int result;
  int64_t outer, block, begin, end;
};

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

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(const KernelSpec& spec, RunFunction run, WorkspaceFunction workspace)
      : run_(std::move(run)), workspace_(std::move(workspace)), paddings_(PaddingOf(spec)) {}

  int64_t workspace_bytes(int width) const override { return workspace_ ? workspace_(width) : 0; }

  absl::Status Run(const KernelRun& run, Parallel& parallel) const override {
    run_(run, parallel);
    for (const Padding& p : paddings_) {
      char* data = Out<char>(run, p.result);
      for (int64_t o = 0; o < p.outer; ++o) {
        std::memset(data + o * p.block + p.begin, 0, static_cast<size_t>(p.end - p.begin));
      }
    }
    return absl::OkStatus();
  }

 private:
  RunFunction run_;
  WorkspaceFunction workspace_;
  std::vector<Padding> paddings_;
};

}  // namespace

std::unique_ptr<Kernel> MakeKernel(const KernelSpec& spec, RunFunction run,
                                   WorkspaceFunction workspace) {
  return std::make_unique<FunctionKernel>(spec, std::move(run), std::move(workspace));
}

absl::Status NoKernel(const KernelSpec& spec) {
  return absl::UnimplementedError(
      absl::StrCat("the CPU has no kernel of ", spec.op->name, " for these types"));
}

bool AllAre(const KernelSpec& spec, DType dtype) {
  const auto fit = [&](const std::vector<TensorType>& types, auto is_wide) {
    for (size_t i = 0; i < types.size(); ++i) {
      const bool is_scalar = types[i].dtype == DType::kF64 && types[i].dims.empty();
      const bool fits = types[i].dtype == (is_wide(*spec.op, i) ? WideOf(dtype) : dtype);
      if (!fits && IsReal(types[i].dtype) && !is_scalar) return false;
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

KernelOr MakeCopy(const KernelSpec& spec) {
  if (spec.input_types[0].dtype != spec.output_types[0].dtype) return NoKernel(spec);
  const int64_t bytes = OutSize(spec, 0) * SizeOf(spec.output_types[0].dtype);
  return MakeKernel(spec, [bytes](const KernelRun& run, Parallel& parallel) {
    CopyBytes(parallel, bytes, In<char>(run, 0), Out<char>(run, 0));
  });
}

void CopyBytes(Parallel& parallel, int64_t bytes, const void* from, void* to) {
  if (from == to) return;
  parallel.For(bytes, 1 << 16, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace mgc::cpu
