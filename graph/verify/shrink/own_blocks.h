// The blocks that belong to single layers, as the layers of a plan are compared.

#ifndef MGC_GRAPH_VERIFY_SHRINK_OWN_BLOCKS_H_
#define MGC_GRAPH_VERIFY_SHRINK_OWN_BLOCKS_H_

#include "graph/plan/plan.h"
#include "graph/verify/shrink/equal_layers.h"

namespace mgc {

// Whether two layers, of which a class holds these blocks or, null, none, hold the same one and own
// it alike, and nothing in it is another layer's.
bool HoldAlike(const Plan& plan, const EqualLayers& layers, const HeldBlock* before,
               const HeldBlock* now);

// Whether bindings to a region of the layers' own blocks are at one place of them.
bool LieAlike(const HeldBlock* before, const Binding& there, const HeldBlock* now,
              const Binding& here, Region region);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_OWN_BLOCKS_H_
