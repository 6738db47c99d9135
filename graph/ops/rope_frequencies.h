// Rotary position embedding (Su et al., arXiv 2104.09864): the frequencies, for evaluation and
// kernels alike.

#ifndef MGC_GRAPH_OPS_ROPE_FREQUENCIES_H_
#define MGC_GRAPH_OPS_ROPE_FREQUENCIES_H_

#include <cstdint>
#include <vector>

#include "graph/types/attrs.h"

namespace mgc {

// Elements of a head that turn, the first ones: attribute `dims`, or all.
int64_t RotatedDims(const Attrs& attrs, int64_t head_dim);

// Radians per position of each of the d / 2 pairs of the d that turn: theta^(-2 j / d). With
// attributes `factor`, `low`, `high` and `original` (all or none), frequencies are stretched as
// Llama 3.1 does (Hugging Face's `rope_type: llama3`, keys factor, low_freq_factor,
// high_freq_factor, original_max_position_embeddings): wavelengths above original / low are slowed
// down by `factor`, those below original / high stay, and between them the two are blended linearly
// in original / wavelength.
std::vector<double> RopeFrequencies(const Attrs& attrs, int64_t head_dim);

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_ROPE_FREQUENCIES_H_
