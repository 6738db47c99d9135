// Tiles of the members of a group, as far as they are in this process.

#ifndef MGC_RUNTIME_COMM_TILES_H_
#define MGC_RUNTIME_COMM_TILES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/comm/cells.h"
#include "runtime/load/exchange.h"

namespace mgc {

// An exchange with the members' tiles, in the group's order; of members elsewhere they are not
// read.
struct TiledExchange {
  const Exchange* exchange = nullptr;
  absl::Span<const char* const> inputs;
  absl::Span<char* const> outputs;
};

// Members [first, last) of a group.
struct MemberRange {
  int64_t first = 0;
  int64_t last = 0;

  bool empty() const { return first >= last; }
  int64_t size() const { return last - first; }
};
// Those of a cell's receivers that are among `members`.
MemberRange ReceiversAmong(const Cell& cell, const MemberRange& members);
// Those that it takes terms from.
MemberRange SourcesAmong(const Cell& cell, const MemberRange& members);

// Writes `count` elements, `behind` elements from the cell's begin, into the tiles of receivers.
void Deliver(const TiledExchange& tiled, const Cell& cell, const MemberRange& receivers,
             int64_t behind, int64_t count, int64_t element_bytes, const char* from);
// Writes the zeros behind the cell's elements there.
void DeliverZeros(const TiledExchange& tiled, const Cell& cell, const MemberRange& receivers,
                  int64_t element_bytes);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TILES_H_
