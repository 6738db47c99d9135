#include "kernels/cpu/adapt.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mgc::cpu {
namespace {

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
