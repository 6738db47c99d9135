#include "runtime/comm/tiles.h"

#include <algorithm>
#include <cstring>

namespace mgc {

MemberRange ReceiversAmong(const Cell& cell, const MemberRange& members) {
  return {std::max(cell.to_begin, members.first), std::min(cell.to_end, members.last)};
}

MemberRange SourcesAmong(const Cell& cell, const MemberRange& members) {
  return {std::max(cell.from_begin, members.first), std::min(cell.from_end, members.last)};
}

void Deliver(const TiledExchange& tiled, const Cell& cell, const MemberRange& receivers,
             int64_t behind, int64_t count, int64_t element_bytes, const char* from) {
  for (int64_t member = receivers.first; member < receivers.last; ++member) {
    char* const to =
        tiled.outputs[static_cast<size_t>(member)] + (cell.out + behind) * element_bytes;
    std::memcpy(to, from, static_cast<size_t>(count * element_bytes));
  }
}

void DeliverZeros(const TiledExchange& tiled, const Cell& cell, const MemberRange& receivers,
                  int64_t element_bytes) {
  if (cell.zeros == 0) return;
  for (int64_t member = receivers.first; member < receivers.last; ++member) {
    char* const to =
        tiled.outputs[static_cast<size_t>(member)] + (cell.out + cell.count) * element_bytes;
    std::memset(to, 0, static_cast<size_t>(cell.zeros * element_bytes));
  }
}

}  // namespace mgc
