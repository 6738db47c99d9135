#include "graph/verify/meaning/step_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/random.h"
#include "graph/ir/vocabulary.h"

namespace mgc {

StepInputs::StepInputs(const Graph& model, uint64_t key)
    : model_(model), random_(key), seed_(key) {}

ResidueTensor StepInputs::Real(absl::string_view name, const TensorType& type) const {
  ResidueTensor tensor = ResidueTensor::Make(SizesOf(type), false);
  const uint64_t stream = StreamOf(name);
  for (size_t i = 0; i < tensor.real.size(); ++i) {
    tensor.real[i] = random_.Random(seed_, stream, i, 0.5);
  }
  return tensor;
}

const ResidueTensor* StepInputs::Data(const std::string& name, int64_t micro_batch) const {
  const ValueId id = model_.FindValue(name);
  const GraphInput* input = id == kNone ? nullptr : model_.FindInput(id);
  if (input == nullptr || input->kind != InputKind::kData) return nullptr;
  const std::string key = absl::StrCat(name, "@", micro_batch);
  const auto [it, is_new] = data_.try_emplace(key);
  if (!is_new) return &it->second;
  const TensorType& type = model_.type(id);
  if (type.dtype != DType::kI64) {
    it->second = Real(key, type);
    return &it->second;
  }
  ResidueTensor tensor = ResidueTensor::Make(SizesOf(type), true);
  const uint64_t stream = StreamOf(key);
  const int64_t entries = VocabularyOf(model_, name);
  const uint64_t bound = entries == 0 ? uint64_t{1} << 30 : static_cast<uint64_t>(entries);
  for (size_t i = 0; i < tensor.index.size(); ++i) {
    tensor.index[i] = static_cast<int64_t>(RandomBits(seed_, stream, i) % bound);
  }
  it->second = std::move(tensor);
  return &it->second;
}

}  // namespace mgc
