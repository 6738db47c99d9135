#include "passes/plan/time/ring_time.h"

#include <algorithm>
#include <utility>

#include "graph/plan/instr_collective.h"

namespace mgc {
namespace {

// How the ranks of a group lie in the domains of one tier.
struct Domains {
  int64_t count = 0;
  int64_t least = 0;  // ranks of the group in a domain: the fewest
  int64_t most = 0;
};

Domains DomainsOf(absl::Span<const int64_t> ranks, int64_t size) {
  const int64_t all = static_cast<int64_t>(ranks.size());
  if (size == kAnyRanks) return {1, all, all};
  Domains domains = {0, all, 0};
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin;
    while (end < ranks.size() && ranks[end] / size == ranks[begin] / size) ++end;
    const int64_t held = static_cast<int64_t>(end - begin);
    ++domains.count;
    domains.least = std::min(domains.least, held);
    domains.most = std::max(domains.most, held);
    begin = end;
  }
  return domains;
}

}  // namespace

double CollectiveSeconds(const Machine& machine, absl::Span<const int64_t> ranks,
                         CollectiveKind kind, int64_t payload_bytes) {
  const int64_t n = static_cast<int64_t>(ranks.size());
  const int64_t wire_bytes = RingWireBytes(kind, payload_bytes, n);
  const double rounds = static_cast<double>(RingRounds(kind));
  double longest = 0, latency = 0;
  Domains inner = {n, 1, 1};  // each rank by itself
  for (const NetworkTier& tier : machine.tiers) {
    const Domains here = DomainsOf(ranks, tier.ranks);
    const bool outermost = here.count == 1 || &tier == &machine.tiers.back();
    // Steps of a round that leave the inner domain and not this one. The last one is not taken.
    const int64_t steps = outermost ? inner.count - 1 : inner.count - here.count;
    if (steps > 0) {
      const double share = kind == CollectiveKind::kAllToAll
                               ? static_cast<double>(here.most - inner.least) /
                                     static_cast<double>(std::max<int64_t>(n - 1, 1))
                               : 1.0 / static_cast<double>(inner.least);
      const double bytes = static_cast<double>(wire_bytes) * share;
      longest = std::max(longest, bytes / tier.At(bytes));
    }
    latency += tier.hop * rounds * static_cast<double>(steps);
    if (outermost) return latency + tier.latency - tier.hop + longest;
    inner = here;
  }
  return longest;
}

double MessageSeconds(const NetworkTier& tier, int64_t bytes) {
  const double size = static_cast<double>(bytes);
  return tier.latency + size / tier.At(size);
}

}  // namespace mgc
