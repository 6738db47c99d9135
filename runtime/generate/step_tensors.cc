#include "runtime/generate/step_tensors.h"

#include <utility>
#include <variant>

namespace mgc {
namespace {

SampleTensor Zeros(const DataInput& input, int64_t samples) {
  SampleTensor tensor;
  tensor.shape = SizesOf(input.type);
  tensor.shape[0] = samples;
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  if (input.type.dtype == DType::kI64) {
    tensor.values = std::vector<int64_t>(static_cast<size_t>(elements), 0);
  } else {
    tensor.values = std::vector<float>(static_cast<size_t>(elements), 0);
  }
  return tensor;
}

}  // namespace

StepTensors::StepTensors(const Plan& plan) : plan_(plan), inputs_(DataInputsOf(plan)) {
  tensors_.reserve(inputs_.size());
  for (const DataInput& input : inputs_) {
    tensors_.push_back(Zeros(input, plan.global_batch_size));
    const bool made = FeedOf(input.name, input.type, plan.seq_length) == DataFeed::kOnes;
    given_.push_back(made ? nullptr : &tensors_.back());
  }
}

SampleTensor* StepTensors::Find(absl::string_view name) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return &tensors_[i];
  }
  return nullptr;
}

absl::Span<int64_t> StepTensors::Integers(absl::string_view name) {
  SampleTensor* const tensor = Find(name);
  if (tensor == nullptr || tensor->dtype() != DType::kI64) return {};
  return absl::MakeSpan(std::get<std::vector<int64_t>>(tensor->values));
}

absl::Span<float> StepTensors::Reals(absl::string_view name) {
  SampleTensor* const tensor = Find(name);
  if (tensor == nullptr || tensor->dtype() != DType::kF32) return {};
  return absl::MakeSpan(std::get<std::vector<float>>(tensor->values));
}

std::vector<std::string> StepTensors::Names() const {
  std::vector<std::string> names;
  for (const DataInput& input : inputs_) names.push_back(input.name);
  return names;
}

StepData StepTensors::Data() const {
  StepData data;
  data.end_sample = plan_.global_batch_size;
  data.tensors = given_;
  return data;
}

}  // namespace mgc
