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

CollectiveFlow::Way CollectiveFlow::WayOf(const Share& share) {
  if (share.kind() == CollectiveKind::kAllToAll || share.bytes() <= kMostDirectBytes) {
    return Way::kDirect;
  }
  // A reduce-scatter sends each term once where it is needed, which no line does better unless a
  // process can add up several of its own before.
  if (share.kind() == CollectiveKind::kReduceScatter && HasOneMemberEach(share)) {
    return Way::kDirect;
  }
  return PairFlow::Serves(share) ? Way::kPair : Way::kLine;
}

void CollectiveFlow::Begin(absl::Span<const TiledExchange> exchanges, const Route& route,
                           Link& link, AllReduceLibrary* library) {
  share_.Begin(exchanges, route);
  way_ = library != nullptr && LibraryFlow::Serves(share_) ? Way::kLibrary : WayOf(share_);
  switch (way_) {
    case Way::kLine:
      return line_.Begin(share_, link);
    case Way::kDirect:
      return direct_.Begin(share_, link);
    case Way::kPair:
      return pair_.Begin(share_, link);
    case Way::kLibrary:
      return library_.Begin(share_, library->group(route.library_group));
  }
}

bool CollectiveFlow::Advance() {
  switch (way_) {
    case Way::kLine:
      return line_.Advance();
    case Way::kDirect:
      return direct_.Advance();
    case Way::kLibrary:
      return library_.Advance();
    case Way::kPair:
      break;
  }
  return pair_.Advance();
}

bool CollectiveFlow::done() const {
  switch (way_) {
    case Way::kLine:
      return line_.done();
    case Way::kDirect:
      return direct_.done();
    case Way::kLibrary:
      return library_.done();
    case Way::kPair:
      break;
  }
  return pair_.done();
}

int CollectiveFlow::waits_for() const {
  const int stop = way_ == Way::kLine      ? line_.waits_for()
                   : way_ == Way::kDirect  ? direct_.waits_for()
                   : way_ == Way::kLibrary ? library_.waits_for()
                                           : pair_.waits_for();
  return share_.route().stops[static_cast<size_t>(stop)].process;
}

}  // namespace mgc
