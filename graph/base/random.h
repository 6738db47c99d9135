// Random numbers as a function of (seed, stream, index): the same whatever the plan, the rank and
// the order in which they are asked for.
//
// Element `index` is word index % 4 of block index / 4 of a generator (graph/base/philox.h). A
// stream is the hash of a parameter's or an op's name, an index the element's place in the whole
// (logical) tensor.

#ifndef MGC_GRAPH_BASE_RANDOM_H_
#define MGC_GRAPH_BASE_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace mgc {

// The stream of a name: its xxh3 hash of 64 bits.
uint64_t StreamOf(absl::string_view name);

// Element `index` of the stream, uniform over all 32 bits.
uint32_t RandomBits(uint64_t seed, uint64_t stream, uint64_t index);

// The element's bits divided by 2^32: uniform in [0, 1).
double RandomUniform(uint64_t seed, uint64_t stream, uint64_t index);

// A standard normal number by Box and Muller, from u = RandomBits(2 index) and
// w = RandomBits(2 index + 1): sqrt(-2 log((u + 1) / 2^32)) cos(2 pi w / 2^32). It lies within 6.67
// of zero.
double RandomNormal(uint64_t seed, uint64_t stream, uint64_t index);

// Elements whose bits lie below this are dropped: round(p_drop * 2^32), for p_drop in [0, 1].
uint64_t DropThreshold(double p_drop);

// Whether dropout with probability `p_drop` keeps the element.
bool KeepBit(uint64_t seed, uint64_t stream, uint64_t index, double p_drop);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_RANDOM_H_
