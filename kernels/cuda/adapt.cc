#include "kernels/cuda/adapt.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/api.h"

namespace mgc::cuda {
namespace {

class IssuedKernel : public Kernel {
 public:
  IssuedKernel(const KernelSpec& spec, IssueFunction issue, int64_t workspace_bytes)
      : name_(spec.op->name),
        issue_(std::move(issue)),
        workspace_bytes_(workspace_bytes),
        paddings_(PaddingOf(spec)) {}

  int64_t workspace_bytes(int /*width*/) const override { return workspace_bytes_; }

  absl::Status Run(const KernelRun& run, Parallel& /*parallel*/) const override {
    // In this order, which arguments of one call would not have.
    int error = issue_(run, run.queue);
    if (error == 0) error = IssueZeros(run);
    return LaunchStatus(error, name_);
  }

 private:
  int IssueZeros(const KernelRun& run) const {
    for (const Padding& p : paddings_) {
      const cudaError_t error =
          cudaMemset2DAsync(Out<char>(run, p.result) + p.begin, static_cast<size_t>(p.block), 0,
                            static_cast<size_t>(p.end - p.begin), static_cast<size_t>(p.outer),
                            static_cast<cudaStream_t>(run.queue));
      if (error != cudaSuccess) return static_cast<int>(error);
    }
    return 0;
  }

  const std::string name_;
  const IssueFunction issue_;
  const int64_t workspace_bytes_;
  const std::vector<Padding> paddings_;
};

}  // namespace

std::unique_ptr<Kernel> MakeKernel(const KernelSpec& spec, IssueFunction issue,
                                   int64_t workspace_bytes) {
  return std::make_unique<IssuedKernel>(spec, std::move(issue), workspace_bytes);
}

absl::Status LaunchStatus(int error, absl::string_view what) {
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      what, " was not launched: ", cudaGetErrorString(static_cast<cudaError_t>(error))));
}

KernelOr MakeCopy(const KernelSpec& spec) {
  if (spec.input_types[0].dtype != spec.output_types[0].dtype) return NoKernel(spec);
  const int64_t bytes = OutSize(spec, 0) * SizeOf(spec.output_types[0].dtype);
  return MakeKernel(spec, [bytes](const KernelRun& run, Stream stream) {
    const void* const from = In<char>(run, 0);
    void* const to = Out<char>(run, 0);
    if (from == to) return 0;
    return static_cast<int>(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes),
                                            cudaMemcpyDeviceToDevice,
                                            static_cast<cudaStream_t>(stream)));
  });
}

}  // namespace mgc::cuda
