// Random inputs of a step, keyed by name and logical index: what a plan and the single device that
// it is compared with both start from.

#ifndef MGC_GRAPH_VERIFY_MEANING_STEP_INPUTS_H_
#define MGC_GRAPH_VERIFY_MEANING_STEP_INPUTS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/eval/models/op_eval.h"
#include "graph/eval/models/residue_model.h"
#include "graph/ir/graph.h"

namespace mgc {

using ResidueTensor = HostTensor<ResiduePair>;

class StepInputs {
 public:
  // `model` is logical and must outlive this.
  StepInputs(const Graph& model, uint64_t key);

  // A parameter, a moment or a scalar: random pairs.
  ResidueTensor Real(absl::string_view name, const TensorType& type) const;
  // Data input `name` for a micro-batch: random pairs (the weights of tokens, so that ranks hold
  // unequal shares of the token count), or indices below what every use of them can look up, any
  // where nothing does. Null when the model has no such input.
  const ResidueTensor* Data(const std::string& name, int64_t micro_batch) const;

 private:
  const Graph& model_;
  ResidueModel random_;
  uint64_t seed_;
  mutable absl::flat_hash_map<std::string, ResidueTensor> data_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_STEP_INPUTS_H_
