// Which chunks do the same but for the layers they hold.
//
// A chunk repeats another one that comes before it, on its own rank or in the class before it on
// the pipeline, when it has as many layers, all layers from the other's first to its last repeat
// those before them in the model, and both are called alike: in every list, of training and
// evaluation and of the update, the same segments in the same order, bound to the same memory. What
// may lie elsewhere is what belongs to layers: each its own block, to which its calls are bound
// alike; and, each as a whole and as far as the other's lie behind those of the chunk that it
// repeats, entries of the norm and working copies. Of another class what the plan says of it as a
// whole has to be the same too: scalars, reports and zeroed memory, and what the update calls of no
// layer; its scratch may lie elsewhere, as a whole.
//
// What a class communicates, at which addresses its actions work and how many collectives may run
// is not compared: that is executed for all chunks, or proved by Order and Memory on the full
// lists.

#ifndef MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_
#define MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_

#include <vector>

#include "graph/plan/plan.h"
#include "graph/verify/shrink/equal_layers.h"

namespace mgc {

// By class and chunk.
using ChunkFlags = std::vector<std::vector<bool>>;

// Whether a chunk repeats the one before it on its rank, and the one in its place of the class
// before. `layers` are those of the plan's model.
ChunkFlags RepeatedOnRank(const Plan& plan, const EqualLayers& layers);
ChunkFlags RepeatedAlongPipeline(const Plan& plan, const EqualLayers& layers);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_EQUAL_CHUNKS_H_
