// Runs what a collective moves, and transfers, by NCCL: for ranks that have a GPU each.
//
// NCCL moves pieces that lie one behind the other. Where a tile's do not, because its piece is not
// along the first dim, because the last piece sticks out of the whole, or because pieces are not in
// the order of members, kernels of our own cut them out before, or join them after, by way of a
// staging buffer. Moves are exact; sums are added in an order of NCCL's own, those of 16 bits
// rounded as often as it likes, but are the same bits on all members.

#ifndef MGC_RUNTIME_CUDA_NCCL_NCCL_EXCHANGES_H_
#define MGC_RUNTIME_CUDA_NCCL_NCCL_EXCHANGES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/api.h"
#include "runtime/comm/tiles.h"
#include "runtime/cuda/nccl/nccl_api.h"
#include "runtime/load/exchange.h"

namespace mgc {

// An end of a communicator that is here, and what its rank has for it.
struct NcclEnd {
  int gpu = 0;
  ncclComm_t comm = nullptr;  // null: of a group of one
  cudaStream_t stream = nullptr;
};

// A member of a group.
struct NcclMember {
  NcclEnd end;
  int64_t position = 0;     // in the group
  char* staging = nullptr;  // StagingBytes of the GPU's memory, at a multiple of 256
};

// What the exchanges of one collective need on each member.
int64_t NcclStagingBytes(absl::Span<const Exchange> exchanges);

// Issues the exchanges of a collective for the members that are here, to each one's stream. All
// members of a group issue the same collectives in the same order; those in one process together.
// Of others no tiles are read. An all-reduce may work in place; other outputs overlap no input.
// Unimplemented for what CheckServed refuses; the error of what could not be issued.
absl::Status IssueNcclExchanges(absl::Span<const TiledExchange> exchanges,
                                absl::Span<const NcclMember> members);

// One end of a transfer, over the communicator of all ranks.
struct NcclTransfer {
  NcclEnd end;
  bool sends = false;
  int peer = 0;  // a rank
  char* memory = nullptr;
  int64_t bytes = 0;
};
// Issues them to their streams, as if all began at once: both ends of one, where they are here, and
// sends and receives that ranks have to each other at the same time, belong in one call. Between
// two ranks they meet in the order in which they are issued.
absl::Status IssueNcclTransfers(absl::Span<const NcclTransfer> transfers);

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_NCCL_NCCL_EXCHANGES_H_
