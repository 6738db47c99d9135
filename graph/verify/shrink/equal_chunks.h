// Which chunks of a class do the same but for the layers they hold.
//
// A chunk repeats the one before it on its rank when it has as many layers, all layers from the
// other's first to its last repeat those before them in the model, and both are called alike: in
// every list, of training and evaluation and of the update, the same segments in the same order,
// bound to the same memory. What may lie elsewhere is what belongs to a layer: its own block, to
// which its calls are bound alike; entries of the norm and working copies, each as far behind as
// the other chunk's lie behind those of the chunk before. How many collectives may run is not
// compared: that is proved by Order, on the full lists.

#ifndef MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_
#define MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_

#include <vector>

#include "graph/plan/plan.h"
#include "graph/verify/shrink/equal_layers.h"

namespace mgc {

// By chunk: whether it repeats the one before it. `layers` are those of the plan's model.
std::vector<bool> RepeatedChunks(const Plan& plan, const PlanClass& rank_class,
                                 const EqualLayers& layers);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_
