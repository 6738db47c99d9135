// Runs what a collective moves, for a group of ranks that share one GPU.
//
// The counterpart of RunExchanges (runtime/comm/run_exchanges.h): the same cells, terms in the same
// order and rounded at the same place, so the same bits; of a sum that is no number only that it is
// none.

#ifndef MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGES_H_
#define MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/launch_shape.h"
#include "runtime/comm/tiles.h"
#include "runtime/load/exchange.h"

namespace mgc::cuda {

// OK, or Unimplemented for what IssueExchanges does not take: what CheckServed refuses, and groups
// of more than 16 members. To be asked once, when a plan is loaded.
absl::Status CheckIssuable(const Exchange& exchange);

// Issues the exchanges of a collective to a stream, many small ones as one launch. Tiles lie in the
// GPU's memory, each element at a multiple of its size; it is fastest where tiles and their rows
// lie at multiples of 16 bytes. What is read here is read before it returns. An all-reduce may work
// in place; other outputs overlap no input. 0, or the cudaError_t of what could not be issued;
// cudaErrorInvalidValue, before any has begun, for what CheckIssuable refuses. Allocates nothing.
int IssueExchanges(Stream stream, absl::Span<const TiledExchange> exchanges);

// What one rank does by itself before, or after, pieces of a tile go their way: the tile is
// [outer, whole, inner], and for each member of a group there is a piece [outer, room, inner], one
// behind the other in the group's order.
struct PieceMove {
  bool joins = false;  // pieces to the tile, what sticks out of the whole being dropped; else the
                       // tile to pieces, where it is zero
  int64_t outer = 1, whole = 0, room = 0, inner = 1;
  absl::Span<const int> piece;  // by member: which piece of the tile is its
  int64_t element_bytes = 0;
  char* tile = nullptr;
  char* pieces = nullptr;
};
// As IssueExchanges; any number of members.
int IssuePieceMoves(Stream stream, absl::Span<const PieceMove> moves);

}  // namespace mgc::cuda

#endif  // MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGES_H_
