// The variants of a small candidate, to prove that none is faster than a plan.

#ifndef MGC_PASSES_SEARCH_PLANS_LAYER_VARIANTS_H_
#define MGC_PASSES_SEARCH_PLANS_LAYER_VARIANTS_H_

#include <vector>

#include "graph/types/model_dims.h"
#include "passes/config/parallel_config.h"

namespace mgc {

// `config` with its stages cut in every way, the even one first; itself alone unless `free_cuts`.
// Nothing where there are more than 256 ways.
std::vector<ParallelConfig> CutsOf(const ParallelConfig& config, const ModelDims& dims,
                                   bool free_cuts);

// Whether all recomputations of a model's layers may be looked at, one layer after another.
bool HasFewRecomputations(const ModelDims& dims);

// `config` with one layer of which the next more is computed again: the core of attention, then the
// whole. Nothing where all layers are computed again whole.
std::vector<ParallelConfig> MoreRecomputedThan(const ParallelConfig& config, const ModelDims& dims);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_LAYER_VARIANTS_H_
