// Runs what a collective moves, for a whole group of ranks that share an address space.
//
// Sums add the members' terms in the group's order, ascending by rank, element by element, so that
// no split, offset or bucket changes a bit.

#ifndef MGC_RUNTIME_COMM_RUN_EXCHANGES_H_
#define MGC_RUNTIME_COMM_RUN_EXCHANGES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/parallel.h"
#include "runtime/comm/cells.h"
#include "runtime/comm/tiles.h"
#include "runtime/load/exchange.h"

namespace mgc {

// OK, or Unimplemented for what no exchange does: a rank's own affair (runtime/load/local_move.h),
// a type that nothing adds.
absl::Status CheckServed(const Exchange& exchange);

// Runs one cell, of a served exchange all of whose tiles can be reached.
void RunCell(const TiledExchange& tiled, const Cells& cells, const Cell& cell);

// Runs the exchanges of a collective for a whole group, as one call of `parallel` over all that
// they move, so that also many small ones are shared. An all-reduce may work in place; other
// outputs overlap no input. The error of CheckServed, before any has begun. Allocates nothing
// unless it fails.
absl::Status RunExchanges(absl::Span<const TiledExchange> exchanges, Parallel& parallel);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_RUN_EXCHANGES_H_
