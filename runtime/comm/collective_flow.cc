#include "runtime/comm/collective_flow.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mgc {
namespace {

// Below it the time of a message counts, not its bytes: a line of processes would add up waits.
constexpr int64_t kMostDirectBytes = int64_t{16} << 10;

// A reduce-scatter sends each term once where it is needed, which no line does better unless a
// process can add up several of its own before.
bool GoesDirectly(const Share& share) {
  if (share.kind() == CollectiveKind::kAllToAll || share.bytes() <= kMostDirectBytes) return true;
  if (share.kind() != CollectiveKind::kReduceScatter) return false;
  const std::vector<Stop>& stops = share.route().stops;
  return std::all_of(stops.begin(), stops.end(),
                     [](const Stop& stop) { return stop.last - stop.first == 1; });
}

}  // namespace

void CollectiveFlow::Begin(absl::Span<const TiledExchange> exchanges, const Route& route,
                           Link& link) {
  share_.Begin(exchanges, route);
  is_direct_ = GoesDirectly(share_);
  is_direct_ ? direct_.Begin(share_, link) : line_.Begin(share_, link);
}

int CollectiveFlow::waits_for() const {
  const int stop = is_direct_ ? direct_.waits_for() : line_.waits_for();
  return share_.route().stops[static_cast<size_t>(stop)].process;
}

}  // namespace mgc
