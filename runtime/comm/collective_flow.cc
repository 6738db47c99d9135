#include "runtime/comm/collective_flow.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mgc {
namespace {

// Below it the time of a message counts, not its bytes: a line of processes would add up waits.
constexpr int64_t kMostDirectBytes = int64_t{16} << 10;

bool HasOneMemberEach(const Share& share) {
  const std::vector<Stop>& stops = share.route().stops;
  return std::all_of(stops.begin(), stops.end(),
                     [](const Stop& stop) { return stop.last - stop.first == 1; });
}

}  // namespace

CollectiveFlow::CollectiveFlow(const FlowRoom& room, const FlowMeans& means)
    : means_(means),
      share_(room.parts),
      direct_(room.stops),
      mapped_(room, means),
      library_(means.library) {}

Flow& CollectiveFlow::WayOf(const Share& share) {
  if (means_.library != nullptr && LibraryFlow::Serves(share)) return library_;
  if (share.bytes() <= kMostDirectBytes) return direct_;
  if (MappedFlow::Serves(share, means_.arenas)) return mapped_;
  if (share.kind() == CollectiveKind::kAllToAll) return direct_;
  // A reduce-scatter sends each term once where it is needed, which no line does better unless a
  // process can add up several of its own before.
  if (share.kind() == CollectiveKind::kReduceScatter && HasOneMemberEach(share)) return direct_;
  return line_;
}

void CollectiveFlow::Begin(absl::Span<const TiledExchange> exchanges, const Route& route,
                           Link& link) {
  share_.Begin(exchanges, route);
  way_ = &WayOf(share_);
  way_->Begin(share_, link);
}

}  // namespace mgc
