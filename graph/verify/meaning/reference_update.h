// The update of a step on a single device (graph/verify/meaning/reference.h).

#ifndef MGC_GRAPH_VERIFY_MEANING_REFERENCE_UPDATE_H_
#define MGC_GRAPH_VERIFY_MEANING_REFERENCE_UPDATE_H_

#include "graph/eval/models/residue_model.h"
#include "graph/ir/graph.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

// By its definition: the norm of the mean gradients, clip, each parameter's optimizer. `out` has
// the sums of gradients; where `scales_loss`, also what the step carries on follows.
void EvaluateUpdate(const Graph& model, const StepInputs& inputs, const ResidueModel& scalars,
                    bool scales_loss, ResiduePair tokens, StepReference* out);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_REFERENCE_UPDATE_H_
