#include "passes/plan/transient_lives.h"

#include <algorithm>
#include <utility>

#include "passes/plan/slot_uses.h"

namespace mgc {
namespace {

class LivesFinder {
 public:
  explicit LivesFinder(const Segment& segment)
      : segment_(segment),
        uses_(SlotUsesOf(segment)),
        next_(segment.slots.size(), -1),
        takes_place_(segment.slots.size(), false) {}

  std::vector<TransientLife> Run() {
    for (size_t i = 0; i < segment_.instrs.size(); ++i) {
      const Instr& instr = segment_.instrs[i];
      for (size_t r = 0; r < instr.outputs.size(); ++r) FindPlace(instr, static_cast<int>(i), r);
    }
    std::vector<TransientLife> lives;
    for (size_t s = 0; s < uses_.size(); ++s) {
      if (IsTransient(static_cast<int>(s)) && !takes_place_[s]) lives.push_back(LifeFrom(s));
    }
    return lives;
  }

 private:
  const SlotUse& UseOf(int slot) const { return uses_[static_cast<size_t>(slot)]; }
  bool IsTransient(int slot) const {
    return segment_.slots[static_cast<size_t>(slot)].formal == 0 && UseOf(slot).first >= 0;
  }

  // That of the first operand that may give its own.
  void FindPlace(const Instr& instr, int at, size_t result) {
    const int to = instr.outputs[result];
    if (!IsTransient(to) || UseOf(to).first != at) return;
    for (size_t k = 0; k < instr.inputs.size(); ++k) {
      const int from = instr.inputs[k];
      int& next = next_[static_cast<size_t>(from)];
      const bool free = IsTransient(from) && UseOf(from).EndsAt(at) && next < 0;
      if (!free || !FitsInPlace(segment_, instr, result, k)) continue;
      next = to;
      takes_place_[static_cast<size_t>(to)] = true;
      return;
    }
  }

  TransientLife LifeFrom(size_t first) const {
    TransientLife life;
    life.alive = {uses_[first].first, 0, AlignUp(segment_.slots[first].bytes)};
    for (int s = static_cast<int>(first); s >= 0; s = next_[static_cast<size_t>(s)]) {
      life.slots.push_back(s);
      life.alive.end = std::max(life.alive.end, UseOf(s).busy);
    }
    return life;
  }

  const Segment& segment_;
  const std::vector<SlotUse> uses_;
  std::vector<int> next_;          // by slot: the one that takes its place
  std::vector<bool> takes_place_;  // that of another
};

}  // namespace

std::vector<TransientLife> TransientLives(const Segment& segment) {
  return LivesFinder(segment).Run();
}

LiveMoment WorstMoment(const std::vector<Interval>& intervals) {
  std::vector<std::pair<int, int64_t>> changes;
  for (const Interval& interval : intervals) {
    changes.emplace_back(interval.begin, interval.bytes);
    changes.emplace_back(interval.end + 1, -interval.bytes);
  }
  std::sort(changes.begin(), changes.end());
  LiveMoment worst;
  int64_t bytes = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    bytes += changes[i].second;
    const bool last_of_moment = i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
    if (last_of_moment && (bytes > worst.bytes || worst.at < 0)) worst = {changes[i].first, bytes};
  }
  return worst;
}

}  // namespace mgc
