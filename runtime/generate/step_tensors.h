// What a step of a plan is given by whoever runs it, an input each.

#ifndef MGC_RUNTIME_GENERATE_STEP_TENSORS_H_
#define MGC_RUNTIME_GENERATE_STEP_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "runtime/data/feed.h"
#include "runtime/data/sample_tensor.h"

namespace mgc {

class StepTensors {
 public:
  // Of all inputs of the plan, which must outlive this, with zeros at first; those that a step
  // gives itself are left to it (DataFeed::kOnes).
  explicit StepTensors(const Plan& plan);
  StepTensors(StepTensors&&) = default;

  const Plan& plan() const { return plan_; }
  // The values of an input for all samples of a step, row-major; empty where the plan has no such
  // input of the type.
  absl::Span<int64_t> Integers(absl::string_view name);
  absl::Span<float> Reals(absl::string_view name);
  // Of all inputs.
  std::vector<std::string> Names() const;

  StepData Data() const;

 private:
  SampleTensor* Find(absl::string_view name);

  const Plan& plan_;
  std::vector<DataInput> inputs_;
  std::vector<SampleTensor> tensors_;       // by input
  std::vector<const SampleTensor*> given_;  // likewise
};

}  // namespace mgc

#endif  // MGC_RUNTIME_GENERATE_STEP_TENSORS_H_
