// Runs what a collective moves, for a whole group of ranks that share an address space.
//
// Sums add the members' terms in the group's order, ascending by rank, element by element, so that
// no split, offset or bucket changes a bit.

#ifndef MGC_RUNTIME_LOAD_RUN_EXCHANGES_H_
#define MGC_RUNTIME_LOAD_RUN_EXCHANGES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/parallel.h"
#include "runtime/load/exchange.h"

namespace mgc {

// An exchange with the members' tiles, in the group's order.
struct TiledExchange {
  const Exchange* exchange = nullptr;
  absl::Span<const char* const> inputs;
  absl::Span<char* const> outputs;
};

// Runs the exchanges of a collective for a whole group, as one call of `parallel` over all that
// they move, so that also many small ones are shared. An all-reduce may work in place; other
// outputs overlap no input. OK, or what keeps one from being run, before any has begun:
// Unimplemented for what is a rank's own affair (runtime/load/local_move.h). Allocates nothing
// unless it fails.
absl::Status RunExchanges(absl::Span<const TiledExchange> exchanges, Parallel& parallel);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_RUN_EXCHANGES_H_
