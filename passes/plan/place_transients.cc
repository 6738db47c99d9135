#include "passes/plan/place_transients.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mgc {
namespace {

// Orders that are tried where the first is not the best possible; fewer of more intervals than
// have so many pairs.
constexpr int64_t kMostTries = 256;
constexpr int64_t kQuickPairs = 1 << 12;

// First-fit in the given order of placement.
std::vector<int64_t> PackInOrder(const std::vector<Interval>& intervals,
                                 const std::vector<int>& order, int64_t* total) {
  std::vector<int64_t> offsets(intervals.size(), -1);
  *total = 0;
  for (int i : order) {
    const Interval& mine = intervals[i];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j = 0; j < intervals.size(); ++j) {
      const Interval& other = intervals[j];
      if (offsets[j] < 0 || other.end < mine.begin || mine.end < other.begin) continue;
      taken.emplace_back(offsets[j], offsets[j] + other.bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - at >= mine.bytes) break;
      at = std::max(at, end);
    }
    offsets[i] = at;
    *total = std::max(*total, at + mine.bytes);
  }
  return offsets;
}

// What ended highest is placed first the next time, where it finds the bottom free.
void MoveHighestToFront(const std::vector<Interval>& intervals, const std::vector<int64_t>& offsets,
                        int64_t total, std::vector<int>* order) {
  const auto highest = std::find_if(order->begin(), order->end(), [&](int i) {
    return offsets[static_cast<size_t>(i)] + intervals[static_cast<size_t>(i)].bytes == total;
  });
  if (highest != order->end()) std::rotate(order->begin(), highest, highest + 1);
}

}  // namespace

std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total) {
  std::vector<int> by_begin(intervals.size());
  std::iota(by_begin.begin(), by_begin.end(), 0);
  std::vector<int> by_size = by_begin;
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](int a, int b) { return intervals[a].begin < intervals[b].begin; });
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return intervals[a].bytes > intervals[b].bytes; });
  std::vector<int64_t> best = PackInOrder(intervals, by_begin, total);
  const int64_t least = WorstMoment(intervals).bytes;
  const auto squared = static_cast<int64_t>(intervals.size() * intervals.size());
  const int64_t tries = *total == least ? 0 : 1 + kMostTries / (1 + squared / kQuickPairs);
  for (int64_t t = 0; t < tries && least < *total; ++t) {
    int64_t other_total;
    std::vector<int64_t> other = PackInOrder(intervals, by_size, &other_total);
    MoveHighestToFront(intervals, other, other_total, &by_size);
    if (other_total >= *total) continue;
    best = std::move(other);
    *total = other_total;
  }
  return best;
}

void PlaceTransients(Segment* segment) {
  const std::vector<TransientLife> lives = TransientLives(*segment);
  std::vector<Interval> intervals;
  for (const TransientLife& life : lives) intervals.push_back(life.alive);
  const std::vector<int64_t> offsets = PackIntervals(intervals, &segment->transient_bytes);
  for (size_t i = 0; i < lives.size(); ++i) {
    for (int slot : lives[i].slots) segment->slots[static_cast<size_t>(slot)].offset = offsets[i];
  }
}

}  // namespace mgc
