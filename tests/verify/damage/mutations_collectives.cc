#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "tests/verify/damage/mutations.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

// What reads the results reads the operands.
void SkipIt(Plan* plan, const InstrPlace& place) {
  ShiftIssued(plan, place.segment, place.instr().collective, -1);
  Skip(place.segment, place.index);
}

// Puts `op` on each operand in the place of a collective.
void MakeLocal(Plan* plan, const InstrPlace& place, const char* op) {
  const Instr start = place.instr();
  std::vector<Instr> copies;
  for (size_t k = 0; k < start.inputs.size(); ++k) {
    Instr copy = start;
    copy.kind = InstrKind::kCompute;
    copy.op = FindOp(op);
    copy.attrs = {};
    copy.collective = -1;
    copy.inputs = {start.inputs[k]};
    copy.outputs = {start.outputs[k]};
    copies.push_back(copy);
  }
  EraseCollective(plan, place);
  std::vector<Instr>& instrs = place.segment->instrs;
  instrs.insert(instrs.begin() + static_cast<int64_t>(place.index), copies.begin(), copies.end());
}

// A sum that is not paid, and nobody says so: a copy, the operand being called what the result is.
bool PretendPaid(Plan* plan, const InstrPlace& place) {
  const std::string op = place.instr().op->name;
  if (op == "all_gather") return false;
  for (size_t k = 0; k < place.instr().inputs.size(); ++k) {
    Sharding& from = place.in(k).sharding;
    const Sharding& to = place.out(k).sharding;
    from.sum = to.sum;
    from.max = to.max;
  }
  MakeLocal(plan, place, op == "reduce_scatter" ? "shard_slice" : "reshard");
  return true;
}

MutationKind Missing(const char* name, InstrFilter filter) {
  return {name, [filter = std::move(filter)](Plan* plan, Dice* dice, std::string* what) {
            InstrPlace place;
            if (!PickPlace(plan, dice, filter, &place, what)) return false;
            if (dice->Flip() && PretendPaid(plan, place)) {
              absl::StrAppend(what, ", pretended to be paid");
            } else {
              SkipIt(plan, place);
            }
            return true;
          }};
}

bool Unpaid(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  return PickPlace(plan, dice, IsStart(), &place, what) && PretendPaid(plan, place);
}

bool EraseStart(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsStart(), &place, what)) return false;
  EraseCollective(plan, place);
  return true;
}

// Runs once more over what it has made: a sum is taken twice, everything else is done again.
bool Double(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsStart(), &place, what)) return false;
  Segment& segment = *place.segment;
  Instr again = place.instr();
  ShiftIssued(plan, &segment, again.collective, 1);
  const size_t wait = WaitOf(segment, place.index);
  const size_t behind = wait < segment.instrs.size() ? wait + 1 : place.index + 1;
  if (again.op->name == "all_reduce" && !JoinsClasses(again)) {
    for (size_t k = 0; k < again.inputs.size(); ++k) {
      const Sharding owed = place.in(k).sharding;
      again.inputs[k] = CloneSlot(&segment, again.outputs[k]);
      segment.slots.back().sharding = owed;
    }
  }
  again.collective = segment.num_collectives;
  Instr wait_again;
  wait_again.kind = InstrKind::kWait;
  wait_again.collective = again.collective;
  wait_again.phase = again.phase;
  const auto at = segment.instrs.begin() + static_cast<int64_t>(behind);
  segment.instrs.insert(at, {again, wait_again});
  Renumber(&segment);
  return true;
}

// A start earlier, or a wait later, past at least one instruction that computes.
bool Move(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsStart(), &place, what)) return false;
  std::vector<Instr>& instrs = place.segment->instrs;
  const int64_t by = static_cast<int64_t>(1 + dice->Below(3));
  const size_t wait = WaitOf(*place.segment, place.index);
  const bool later = wait < instrs.size() && dice->Flip();
  const int64_t from = static_cast<int64_t>(later ? wait : place.index);
  const int64_t to = later ? from + by : from - by;
  if (to < 0 || to >= static_cast<int64_t>(instrs.size())) return false;
  const Instr moved = instrs[static_cast<size_t>(from)];
  instrs.erase(instrs.begin() + from);
  instrs.insert(instrs.begin() + to, moved);
  Renumber(place.segment);
  absl::StrAppend(what, later ? ", wait later by " : ", start earlier by ", by);
  return true;
}

bool DropWait(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter is_wait = [](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kWait;
  };
  if (!PickPlace(plan, dice, is_wait, &place, what)) return false;
  Remove(place.segment, place.index);
  return true;
}

bool SumToMax(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsStartOf("all_reduce"), &place, what)) return false;
  bool changed = false;
  for (size_t k = 0; k < place.instr().inputs.size(); ++k) {
    Sharding& from = place.in(k).sharding;
    if (place.instr().inputs[k] == place.instr().outputs[k]) continue;
    const AxisSet paid = from.Owed() - place.out(k).sharding.Owed();
    const bool is_sum = from.sum.ContainsAll(paid);
    from.sum = is_sum ? from.sum - paid : from.sum | paid;
    from.max = is_sum ? from.max | paid : from.max - paid;
    changed |= !paid.empty();
  }
  return changed;
}

AxisList Swapped(const AxisList& axes, AxisId a, AxisId b) {
  AxisList swapped;
  for (AxisId axis : axes) swapped.push_back(axis == a ? b : axis == b ? a : axis);
  return swapped;
}
AxisSet Swapped(AxisSet axes, AxisId a, AxisId b) {
  AxisSet swapped;
  for (AxisId axis : axes) swapped.Add(axis == a ? b : axis == b ? a : axis);
  return swapped;
}
void SwapAxes(Sharding* sharding, AxisId a, AxisId b) {
  for (AxisList& axes : sharding->dims) axes = Swapped(axes, a, b);
  sharding->storage = Swapped(sharding->storage, a, b);
  sharding->sum = Swapped(sharding->sum, a, b);
  sharding->max = Swapped(sharding->max, a, b);
}
bool PickAxes(const Plan& plan, Dice* dice, AxisId* a, AxisId* b) {
  const size_t axes = static_cast<size_t>(plan.mesh.num_axes());
  if (axes < 2) return false;
  *a = static_cast<AxisId>(dice->Below(axes));
  *b = static_cast<AxisId>((static_cast<size_t>(*a) + 1 + dice->Below(axes - 1)) % axes);
  return true;
}

// Over other axes than meant: those of operand and result change alike.
bool WrongAxis(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  AxisId a = 0;
  AxisId b = 0;
  if (!PickAxes(*plan, dice, &a, &b) || !PickPlace(plan, dice, IsStart(), &place, what)) {
    return false;
  }
  bool changed = false;
  for (size_t k = 0; k < place.instr().inputs.size(); ++k) {
    for (Slot* slot : {&place.in(k), &place.out(k)}) {
      const Sharding before = slot->sharding;
      SwapAxes(&slot->sharding, a, b);
      changed |= slot->sharding != before;
    }
  }
  return changed;
}

// The same for all slots of a segment: its instructions still fit together.
bool WrongAxesInSegment(Plan* plan, Dice* dice, std::string* what) {
  AxisId a = 0;
  AxisId b = 0;
  if (!PickAxes(*plan, dice, &a, &b)) return false;
  Segment* segment = dice->Pick(&plan->segments);
  bool changed = false;
  for (Slot& slot : segment->slots) {
    const Sharding before = slot.sharding;
    SwapAxes(&slot.sharding, a, b);
    changed |= slot.sharding != before;
  }
  *what = segment->name;
  return changed;
}

bool IsBucket(const Segment&, const Instr& instr) {
  return instr.kind == InstrKind::kStart && instr.inputs.size() > 1;
}

// One of the parameters of a bucket is left out: a norm's gradient that is not summed over the
// sequence shards, a parameter that is not gathered.
bool BucketPartMissing(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsBucket, &place, what)) return false;
  const size_t part = dice->Below(place.instr().inputs.size());
  absl::StrAppend(what, ", part ", part);
  if (dice->Flip()) place.in(part).sharding = place.out(part).sharding;
  SkipPart(place.segment, place.index, part);
  return true;
}

bool BucketPartDoubled(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsBucket, &place, what)) return false;
  const size_t part = dice->Below(place.instr().inputs.size());
  place.instr().inputs.push_back(place.instr().inputs[part]);
  place.instr().outputs.push_back(place.instr().outputs[part]);
  return true;
}

bool BucketPartsSwapped(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsBucket, &place, what)) return false;
  std::vector<int>& inputs = place.instr().inputs;
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = i + 1; j < inputs.size(); ++j) {
      const Slot& a = place.in(i);
      const Slot& b = place.in(j);
      if (a.type == b.type && a.sharding == b.sharding) pairs.emplace_back(i, j);
    }
  }
  if (pairs.empty()) return false;
  const auto [i, j] = *dice->Pick(&pairs);
  std::swap(inputs[i], inputs[j]);
  absl::StrAppend(what, ", parts ", i, " and ", j);
  return true;
}

// Two collectives of a segment change places, with their waits.
bool SwapStarts(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<InstrPlace, InstrPlace>> pairs;
  const std::vector<InstrPlace> starts = InstrsWhere(plan, IsStart());
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    if (starts[i].segment == starts[i + 1].segment) pairs.emplace_back(starts[i], starts[i + 1]);
  }
  if (pairs.empty()) return false;
  const auto& [a, b] = *dice->Pick(&pairs);
  *what = absl::StrCat(a.Name(), " and ", b.Name());
  std::swap(a.instr(), b.instr());
  Renumber(a.segment);
  return true;
}

// Gathers or scatters another dim than meant.
bool WrongDim(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsStart(), &place, what)) return false;
  const size_t part = dice->Below(place.instr().inputs.size());
  const auto kind = CollectiveOfPart(*place.segment, place.instr(), part);
  if (!kind.ok() || kind->dim < 0 || place.in(part).sharding.dims.size() < 2) return false;
  Slot& cut = kind->kind == CollectiveKind::kAllGather ? place.in(part) : place.out(part);
  const size_t dims = cut.sharding.dims.size();
  const size_t from = static_cast<size_t>(kind->dim);
  const size_t to = (from + 1 + dice->Below(dims - 1)) % dims;
  cut.sharding.dims[from].Remove(kind->axes[0]);
  cut.sharding.dims[to].push_back(kind->axes[0]);
  return true;
}

}  // namespace

std::vector<MutationKind> CollectiveMutations() {
  return {
      Missing("collective dropped", IsStart()),
      Missing("f missing", IsLabeled("f")),
      Missing("g missing", IsLabeled("g")),
      Missing("vocabulary reduction missing", IsLabeled("vocabulary")),
      Missing("gradient reduction missing", IsLabeled("gradient")),
      Missing("parameter gather missing", IsLabeled("parameter")),
      Missing("loss sum missing", IsLabeled("loss")),
      Missing("norm sum missing", IsLabeled("norm")),
      {"sum unpaid, shardings adapted", Unpaid},
      {"collective erased", EraseStart},
      {"collective doubled", Double},
      {"collective moved", Move},
      {"collective's wait dropped", DropWait},
      {"sum and max exchanged", SumToMax},
      {"collective over another axis", WrongAxis},
      {"axes exchanged in a segment", WrongAxesInSegment},
      {"collective along another dim", WrongDim},
      {"part of a bucket missing", BucketPartMissing},
      {"part of a bucket doubled", BucketPartDoubled},
      {"parts of a bucket exchanged", BucketPartsSwapped},
      {"collectives exchanged", SwapStarts},
  };
}

}  // namespace mgc
