// What a step is fed with: the data inputs that the load instructions of a plan may name.

#ifndef MGC_GRAPH_PLAN_DATA_INPUT_H_
#define MGC_GRAPH_PLAN_DATA_INPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "graph/types/tensor_type.h"

namespace mgc {

enum class DataInput : uint8_t { kTokens, kTargets, kWeights };
absl::string_view NameOf(DataInput input);  // `tokens`, ...
// None for another name.
absl::optional<DataInput> DataInputNamed(absl::string_view name);

// Its values for one micro-batch of all ranks: [samples, tokens per sample], indices of tokens, or
// what each of them counts.
TensorType TypeOf(DataInput input, const Plan& plan);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_DATA_INPUT_H_
