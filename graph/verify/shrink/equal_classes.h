// Which classes of ranks do the same but for the layers they hold.
//
// A class repeats the one before it on the pipeline when each of its chunks is the next stage after
// the other's, of as many layers that repeat those before them in the model, and everything the
// plan says of it is what it says of the other: blocks at the same addresses; in every list, of
// training and evaluation and of the update, the same segments in the same order; their formals
// bound alike; the same scalars, reports and zeroed memory. Two things may lie elsewhere, each as a
// whole: the scratch of all calls, and the entries of the norm, which follow those of the class
// before. What a class communicates and at which addresses its actions work, which depends on its
// place on the pipeline, is not compared: that is executed for all classes, and proved by Order and
// Memory on the full lists.

#ifndef MGC_GRAPH_VERIFY_SHRINK_EQUAL_CLASSES_H_
#define MGC_GRAPH_VERIFY_SHRINK_EQUAL_CLASSES_H_

#include <vector>

#include "graph/plan/plan.h"
#include "graph/verify/shrink/equal_layers.h"

namespace mgc {

// By class: whether it repeats the one before it. `layers` are those of the plan's model.
std::vector<bool> RepeatedClasses(const Plan& plan, const EqualLayers& layers);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_EQUAL_CLASSES_H_
