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

}  // namespace mgc::cuda

#endif  // MGC_RUNTIME_CUDA_EXCHANGE_EXCHANGES_H_
