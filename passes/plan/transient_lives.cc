#include "passes/plan/transient_lives.h"

#include <algorithm>
#include <utility>

namespace mgc {
namespace {

// When a slot is used, in instruction numbers. What a collective reads or writes is in use until it
// is waited for, else until the segment ends.
struct SlotUse {
  int first = -1;  // -1: never used
  int last = -1;
  int busy = -1;  // `last`, or when the last of its collectives is waited for
  int held = -1;  // the same of all uses but the last

  // Whether the instruction is the last to use it, and no collective has it then.
  bool EndsAt(int instr) const { return last == instr && held < instr; }
};

// By slot.
std::vector<SlotUse> SlotUsesOf(const Segment& segment) {
  const int size = static_cast<int>(segment.instrs.size());
  std::vector<int> wait_at(static_cast<size_t>(segment.num_collectives), size);
  for (int i = 0; i < size; ++i) {
    const Instr& instr = segment.instrs[static_cast<size_t>(i)];
    if (instr.kind == InstrKind::kWait) wait_at[static_cast<size_t>(instr.collective)] = i;
  }
  std::vector<SlotUse> uses(segment.slots.size());
  for (int i = 0; i < size; ++i) {
    const Instr& instr = segment.instrs[static_cast<size_t>(i)];
    const bool starts = instr.kind == InstrKind::kStart;
    const int busy = starts ? wait_at[static_cast<size_t>(instr.collective)] : i;
    for (const auto* slots : {&instr.inputs, &instr.outputs}) {
      for (int slot : *slots) {
        SlotUse& use = uses[static_cast<size_t>(slot)];
        if (use.first < 0) use.first = i;
        if (use.last < i) use.held = use.busy;
        use.last = i;
        use.busy = std::max(use.busy, busy);
      }
    }
  }
  return uses;
}

// Whether result `result` of an instruction may take the place of operand `operand`, as far as op
// and sizes say: its bytes are those of the operand, and the operand is named once.
bool FitsInPlace(const Segment& segment, const Instr& instr, size_t result, size_t operand) {
  const int from = instr.inputs[operand];
  const int to = instr.outputs[result];
  return instr.op != nullptr && MayTakePlace(*instr.op, result, operand) &&
         segment.slots[static_cast<size_t>(from)].bytes ==
             segment.slots[static_cast<size_t>(to)].bytes &&
         std::count(instr.inputs.begin(), instr.inputs.end(), from) == 1;
}

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
