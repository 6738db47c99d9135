#include "passes/plan/place_transients.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mgc {
namespace {

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

}  // namespace

std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total) {
  std::vector<int> by_begin(intervals.size());
  std::iota(by_begin.begin(), by_begin.end(), 0);
  std::vector<int> by_size = by_begin;
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](int a, int b) { return intervals[a].begin < intervals[b].begin; });
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return intervals[a].bytes > intervals[b].bytes; });
  int64_t other_total;
  std::vector<int64_t> offsets = PackInOrder(intervals, by_begin, total);
  std::vector<int64_t> other = PackInOrder(intervals, by_size, &other_total);
  if (other_total >= *total) return offsets;
  *total = other_total;
  return other;
}

// Lifetimes are in instruction numbers. What a collective reads or writes is busy until it is
// waited for.
void PlaceTransients(Segment* segment) {
  std::vector<Interval> lives(segment->slots.size(), Interval{-1, -1, 0});
  std::vector<int> wait_at(static_cast<size_t>(segment->num_collectives),
                           static_cast<int>(segment->instrs.size()));
  for (size_t i = 0; i < segment->instrs.size(); ++i) {
    const Instr& instr = segment->instrs[i];
    if (instr.kind == InstrKind::kWait) wait_at[instr.collective] = static_cast<int>(i);
  }
  for (size_t i = 0; i < segment->instrs.size(); ++i) {
    const Instr& instr = segment->instrs[i];
    const int end =
        instr.kind == InstrKind::kStart ? wait_at[instr.collective] : static_cast<int>(i);
    const auto touch = [&](int slot) {
      Interval& life = lives[slot];
      if (life.begin < 0) life.begin = static_cast<int>(i);
      life.end = std::max(life.end, end);
    };
    for (int slot : instr.inputs) touch(slot);
    for (int slot : instr.outputs) touch(slot);
  }
  std::vector<Interval> transients;
  std::vector<int> slots;
  for (size_t s = 0; s < segment->slots.size(); ++s) {
    if (segment->slots[s].formal != 0 || lives[s].begin < 0) continue;
    lives[s].bytes = AlignUp(segment->slots[s].bytes);
    transients.push_back(lives[s]);
    slots.push_back(static_cast<int>(s));
  }
  const std::vector<int64_t> offsets = PackIntervals(transients, &segment->transient_bytes);
  for (size_t i = 0; i < slots.size(); ++i) segment->slots[slots[i]].offset = offsets[i];
}

}  // namespace mgc
