// How many of a pipeline rank's layers each of its chunks has.
//
//   2 ranks of 2 chunks, 8 layers each, a head of two   ->   stages of 4, 5, 4, 3: E tttt | ...
//
// A step of several chunks is even where all stages take the same: the chunk with the head has
// fewer layers, by as many as the head takes, and the others of its rank have them.

#ifndef MGC_PASSES_SEARCH_PLANS_CHUNK_LAYERS_H_
#define MGC_PASSES_SEARCH_PLANS_CHUNK_LAYERS_H_

#include <cstdint>
#include <vector>

namespace mgc {

// Of a micro-batch, forward and backward. An end that the model lacks is less than 0: its stage has
// a layer at least, as those between have.
struct StageCosts {
  int64_t layer_ns = 0;
  int64_t embedding_ns = -1;
  int64_t head_ns = -1;
};

// The layers that the first or the last stage, or one between, has to have.
int64_t LeastLayers(const StageCosts& costs, int64_t stage, int64_t num_stages);

// By stage, from the layers of every rank: each goes to that chunk of its rank which takes least so
// far. Of chunks that take the same the ones nearer to the pipeline's ends stay short, as where
// stages are cut evenly. A rank has at least what its chunks have to have.
std::vector<int64_t> LayersOfChunks(const std::vector<int64_t>& by_rank, int64_t chunks,
                                    const StageCosts& costs);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_CHUNK_LAYERS_H_
