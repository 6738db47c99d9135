// Parameters that several layers use, and the classes of a pipeline that hold those layers.

#ifndef MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_
#define MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_

#include "absl/status/status.h"
#include "passes/config/place_layers.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

// A parameter's gradient is added up inside one class, or by a sum over the two classes of the
// first and the last stage: the layers that use a parameter lie in one class or in exactly these
// two, and both contribute to its gradient, in one layout. stage_c6, InvalidArgument, for all of
// which this is not so. `parts` and `crossings` are of the training step.
absl::Status CheckShared(const Parts& parts, const Crossings& crossings,
                         const LayerPlacement& placement);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_
