// Gradients of one evaluated micro-batch, by the ops' gradient rules, each op evaluated as soon as
// a rule emits it.

#ifndef MGC_GRAPH_VERIFY_MEANING_EAGER_GRADIENT_H_
#define MGC_GRAPH_VERIFY_MEANING_EAGER_GRADIENT_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/residue_model.h"
#include "graph/ir/graph.h"
#include "graph/verify/meaning/backward_values.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

// By parameter: `scale` times the gradient of the weighted sum of all loss terms. `forward` has run
// the model's forward pass for the micro-batch that begins with sample `first_sample`. All that the
// rules emit and the values of the forward pass are added to `all`, unless that is null.
absl::StatusOr<std::map<std::string, ResidueTensor>> EagerGradients(
    const Graph& model, const GraphEvaluator<ResidueModel>& forward, const ResidueModel& scalars,
    ResiduePair scale, int64_t first_sample, BackwardValues* all);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_EAGER_GRADIENT_H_
