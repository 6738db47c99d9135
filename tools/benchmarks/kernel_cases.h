// What the kernels' benchmark times: every kernel of the list at the sizes of real training steps,
// and one that no step uses at those of its op's own example, grown.

#ifndef MGC_TOOLS_BENCHMARKS_KERNEL_CASES_H_
#define MGC_TOOLS_BENCHMARKS_KERNEL_CASES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "kernels/kernel.h"

namespace mgc {

// One use of an op on one device. The segment belongs to the cases' owner.
struct KernelCase {
  std::string name;  // `matmul/f32[4,256,768],f32[768,3072]`, behind it `/gpt2_bf16` for that step
  const Segment* segment = nullptr;
  const Instr* instr = nullptr;
  int64_t calls = 0;      // in one step; 0: no step has it
  int64_t max_index = 1;  // integer operands stay below it
};

class KernelCases {
 public:
  // Cases of all `kernels`, in their order: distinct uses in training steps of a GPT-2 of 124M
  // parameters and of a Llama of about its size, each in f32 and in bf16, with 4 sequences of `seq`
  // tokens and `layers` layers. Errors of the compiler; Internal when an op has no example.
  static absl::StatusOr<std::unique_ptr<KernelCases>> Create(absl::Span<const KernelEntry> kernels,
                                                             int64_t layers, int64_t seq);

  const std::vector<KernelCase>& list() const { return list_; }

 private:
  KernelCases() = default;
  void AddStep(const Plan& plan, const std::string& model);
  absl::Status AddExample(const std::string& op);

  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<Segment>> examples_;
  std::vector<KernelCase> list_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_KERNEL_CASES_H_
