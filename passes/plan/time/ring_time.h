// How long messages take on a machine's networks.
//
// A collective runs as a ring of its group's ranks in ascending order, which leaves each domain of
// a network once. Ranks that share a domain have a port each to the network outside it, and the
// ring's bytes are spread over these ports, as one ring beside another: where k ranks of a group
// are in every machine, it leaves them at k times the bandwidth of one port. The network that needs
// longest sets the pace.
//
//   time    latency of the outermost network, a hop of its network for every further step, and the
//           longest of bytes / ports / bandwidth
//   steps   n - 1 for n ranks, 2 (n - 1) where pieces go around twice
//
// In an all-to-all nothing is passed on: each rank sends through its own port what goes outside.
// Sums inside a switch, trees and protocols for small messages are left out.

#ifndef MGC_PASSES_PLAN_TIME_RING_TIME_H_
#define MGC_PASSES_PLAN_TIME_RING_TIME_H_

#include <cstdint>

#include "absl/types/span.h"
#include "graph/ir/collective.h"
#include "graph/types/machine.h"

namespace mgc {

// Of a collective of this kind and payload among these ranks, which ascend.
double CollectiveSeconds(const Machine& machine, absl::Span<const int64_t> ranks,
                         CollectiveKind kind, int64_t payload_bytes);

// Of one message between two ranks that the tier joins.
double MessageSeconds(const NetworkTier& tier, int64_t bytes);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_RING_TIME_H_
