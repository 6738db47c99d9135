#include "graph/plan/data_input.h"

#include "graph/ir/step_names.h"

namespace mgc {

absl::string_view NameOf(DataInput input) {
  switch (input) {
    case DataInput::kTokens:
      return kTokensInput;
    case DataInput::kTargets:
      return kTargetsInput;
    case DataInput::kWeights:
      return kWeightsInput;
  }
  return "";
}

absl::optional<DataInput> DataInputNamed(absl::string_view name) {
  for (const DataInput input : {DataInput::kTokens, DataInput::kTargets, DataInput::kWeights}) {
    if (NameOf(input) == name) return input;
  }
  return absl::nullopt;
}

TensorType TypeOf(DataInput input, const Plan& plan) {
  return {
      input == DataInput::kWeights ? DType::kF32 : DType::kI64,
      {{plan.global_batch_size / plan.num_micro_batches, "batch", 1}, {plan.seq_length, "seq", 1}}};
}

}  // namespace mgc
