#include "passes/choose_cuts.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

// Bytes that cross a first part of the cuts, the last of which is at `place`.
struct Way {
  int64_t bytes = kMost;  // none there
  size_t place = kNowhere;

  friend bool operator<(const Way& a, const Way& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.place < b.place;
  }
};

// What cuts over one tier come to: the piece from a cut at place a to one at place b takes
// sent[b] - taken[a].
struct Crossing {
  std::vector<int64_t> sent;     // by place: when a piece that ends there has sent
  std::vector<int64_t> taken;    // by place: when one that begins there begins to take
  std::vector<int64_t> latest;   // all of `taken`, the latest first
  std::vector<size_t> position;  // by place: where in `latest` it stands
};

Crossing CrossingOver(absl::Span<const CutPlace> places, const NetworkTier* tier) {
  Crossing crossing;
  std::vector<size_t> order;
  for (const CutPlace& place : places) {
    const int64_t ns = tier == nullptr ? 0 : TransferNs(*tier, place.bytes);
    crossing.sent.push_back(place.ns + ns);
    crossing.taken.push_back(place.ns - ns);
    order.push_back(order.size());
  }
  const std::vector<int64_t>& taken = crossing.taken;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(-taken[a], a) < std::make_pair(-taken[b], b);
  });
  crossing.position.resize(order.size());
  for (const size_t place : order) {
    crossing.position[place] = crossing.latest.size();
    crossing.latest.push_back(taken[place]);
  }
  return crossing;
}

// The least of the ways put at the first so many positions.
class LeastWays {
 public:
  explicit LeastWays(size_t positions) : least_(positions + 1) {}

  void Put(size_t position, const Way& way) {
    for (size_t i = position + 1; i < least_.size(); i += i & (~i + 1)) {
      least_[i] = std::min(least_[i], way);
    }
  }
  Way OfFirst(size_t positions) const {
    Way least;
    for (size_t i = positions; i > 0; i -= i & (~i + 1)) least = std::min(least, least_[i]);
    return least;
  }

 private:
  std::vector<Way> least_;  // a Fenwick tree
};

class Chooser {
 public:
  Chooser(absl::Span<const CutPlace> places, int64_t end_ns,
          absl::Span<const NetworkTier* const> tiers)
      : places_(places), end_ns_(end_ns), slack_(places.size() - tiers.size()) {
    for (const NetworkTier* tier : tiers) {
      const auto [known, is_new] = by_tier_.try_emplace(tier);
      if (is_new) known->second = CrossingOver(places, tier);
      cuts_.push_back(&known->second);
    }
  }

  // The shortest time in which all pieces can be is found by halving; then the fewest bytes.
  std::vector<size_t> Run() const {
    if (cuts_.empty()) return {};
    int64_t too_short = -1;
    int64_t enough = end_ns_;
    for (const auto& [tier, crossing] : by_tier_) {
      for (size_t p = 0; p < places_.size(); ++p) {
        enough = std::max(enough, end_ns_ + 2 * (crossing.sent[p] - places_[p].ns));
      }
    }
    while (enough - too_short > 1) {
      const int64_t ns = too_short + (enough - too_short) / 2;
      (Suffices(ns) ? enough : too_short) = ns;
    }
    return FewestBytes(enough);
  }

 private:
  // Whether no piece needs longer. Cut k leaves room for the others: it is at one of slack_ + 1
  // places from k on.
  bool Suffices(int64_t ns) const {
    std::vector<bool> reached(slack_ + 1, true);
    for (size_t k = 0; k < cuts_.size(); ++k) {
      int64_t taken = k == 0 ? 0 : kNever;  // the latest before the place
      for (size_t i = 0; i <= slack_; ++i) {
        if (k > 0 && reached[i]) taken = std::max(taken, cuts_[k - 1]->taken[k - 1 + i]);
        reached[i] = taken != kNever && cuts_[k]->sent[k + i] <= ns + taken;
      }
    }
    for (size_t i = 0; i <= slack_; ++i) {
      if (reached[i] && end_ns_ <= ns + cuts_.back()->taken[cuts_.size() - 1 + i]) return true;
    }
    return false;
  }

  // Of those of which no piece needs longer.
  std::vector<size_t> FewestBytes(int64_t ns) const {
    std::vector<std::vector<size_t>> before;  // by cut and place: the place of the cut before
    std::vector<Way> ways(slack_ + 1);
    for (size_t i = 0; i <= slack_; ++i) {
      if (cuts_[0]->sent[i] <= ns) ways[i] = {places_[i].bytes, i};
    }
    for (size_t k = 1; k < cuts_.size(); ++k) {
      before.emplace_back(slack_ + 1, kNowhere);
      ways = OneMore(k, ns, ways, &before.back());
    }
    Way best;
    for (const Way& way : ways) {
      if (way.place == kNowhere || end_ns_ > ns + cuts_.back()->taken[way.place]) continue;
      best = std::min(best, way);
    }
    std::vector<size_t> chosen = {best.place};
    for (size_t k = cuts_.size() - 1; k > 0; --k) {
      chosen.push_back(before[k - 1][chosen.back() - k]);
    }
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  // The ways to cut k, from those to the cut before it.
  std::vector<Way> OneMore(size_t k, int64_t ns, const std::vector<Way>& ways,
                           std::vector<size_t>* before) const {
    const Crossing& crossing = *cuts_[k - 1];
    LeastWays least(places_.size());
    std::vector<Way> more(slack_ + 1);
    for (size_t i = 0; i <= slack_; ++i) {
      if (ways[i].place != kNowhere) least.Put(crossing.position[ways[i].place], ways[i]);
      const size_t place = k + i;
      const auto late = std::upper_bound(crossing.latest.begin(), crossing.latest.end(),
                                         cuts_[k]->sent[place] - ns, std::greater<>());
      const Way best = least.OfFirst(static_cast<size_t>(late - crossing.latest.begin()));
      if (best.place == kNowhere) continue;
      more[i] = {best.bytes + std::min(places_[place].bytes, kMost / 2 - best.bytes), place};
      (*before)[i] = best.place;
    }
    return more;
  }

  const absl::Span<const CutPlace> places_;
  const int64_t end_ns_;
  const size_t slack_;  // places beyond one for each cut
  std::map<const NetworkTier*, Crossing> by_tier_;
  std::vector<const Crossing*> cuts_;
};

}  // namespace

std::vector<size_t> ChooseCuts(absl::Span<const CutPlace> places, int64_t end_ns,
                               absl::Span<const NetworkTier* const> tiers) {
  return Chooser(places, end_ns, tiers).Run();
}

}  // namespace mgc
