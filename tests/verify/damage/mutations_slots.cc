#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

bool SameView(const Slot& a, const Slot& b) { return a.type == b.type && a.sharding == b.sharding; }

// Another slot of the segment with the same type and sharding, or -1.
int OtherLike(const Segment& segment, int slot, Dice* dice) {
  std::vector<int> others;
  for (size_t s = 0; s < segment.slots.size(); ++s) {
    const int other = static_cast<int>(s);
    if (other != slot && SameView(segment.slots[s], segment.slots[static_cast<size_t>(slot)])) {
      others.push_back(other);
    }
  }
  const int* picked = dice->Pick(&others);
  return picked == nullptr ? -1 : *picked;
}

bool HasSlots(const Segment&, const Instr& instr) {
  return !instr.inputs.empty() || !instr.outputs.empty();
}

MutationKind OtherSlot(const char* name, std::vector<int> Instr::*list) {
  return {name, [list](Plan* plan, Dice* dice, std::string* what) {
            std::vector<InstrPlace> places = InstrsWhere(plan, HasSlots);
            for (int tries = 0; tries < 20 && !places.empty(); ++tries) {
              const InstrPlace place = *dice->Pick(&places);
              std::vector<int>& slots = place.instr().*list;
              if (slots.empty()) continue;
              int* slot = dice->Pick(&slots);
              const int other = OtherLike(*place.segment, *slot, dice);
              if (other < 0) continue;
              *what = absl::StrCat(place.Name(), ", %", *slot, " becomes %", other);
              *slot = other;
              return true;
            }
            return false;
          }};
}

// Sums and products of two commute, bit for bit; those of three do not.
bool Commutes(const Instr& instr, size_t i, size_t j) {
  if (instr.kind != InstrKind::kCompute) return false;
  const std::string& op = instr.op->name;
  const bool either = op == "add" || op == "mul" || op == "accumulate" || op == "weighted_sum";
  return either && i + j == 1;
}

MutationKind SlotsSwapped(const char* name, std::vector<int> Instr::*list) {
  return {name, [list](Plan* plan, Dice* dice, std::string* what) {
            std::vector<std::pair<InstrPlace, std::pair<size_t, size_t>>> places;
            for (const InstrPlace& place : InstrsWhere(plan, IsCompute())) {
              const std::vector<int>& slots = place.instr().*list;
              const std::vector<Slot>& all = place.segment->slots;
              for (size_t i = 0; i < slots.size(); ++i) {
                for (size_t j = i + 1; j < slots.size(); ++j) {
                  if (slots[i] == slots[j] || Commutes(place.instr(), i, j) ||
                      all[static_cast<size_t>(slots[i])].type !=
                          all[static_cast<size_t>(slots[j])].type) {
                    continue;
                  }
                  places.push_back({place, {i, j}});
                }
              }
            }
            const auto* picked = dice->Pick(&places);
            if (picked == nullptr) return false;
            const auto& [i, j] = picked->second;
            std::vector<int>& slots = picked->first.instr().*list;
            std::swap(slots[i], slots[j]);
            *what = absl::StrCat(picked->first.Name(), ", ", i, " and ", j);
            return true;
          }};
}

// Moves a slot by a multiple of the alignment of values.
bool OffsetShifted(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> places = SlotsInUse(plan);
  const SlotPlace place = *dice->Pick(&places);
  const int64_t steps[] = {64, -64, 8, -8, place.slot().bytes};
  const int64_t by = steps[dice->Below(5)];
  if (place.slot().offset + by < 0 || by == 0) return false;
  place.slot().offset += by;
  *what = absl::StrCat(place.Name(), " by ", by);
  return true;
}

// Two slots behind one formal get the same offset.
bool Overlapped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> places = SlotsInUse(plan);
  for (int tries = 0; tries < 20; ++tries) {
    const SlotPlace a = *dice->Pick(&places);
    const SlotPlace b = *dice->Pick(&places);
    if (a.segment != b.segment || a.slot().formal != b.slot().formal ||
        a.slot().offset == b.slot().offset) {
      continue;
    }
    a.slot().offset = b.slot().offset;
    *what = absl::StrCat(a.Name(), " onto ", b.slot().name);
    return true;
  }
  return false;
}

// Two slots of the same size behind one formal change places.
bool PlacesSwapped(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> places = SlotsInUse(plan);
  for (int tries = 0; tries < 200; ++tries) {
    const SlotPlace a = *dice->Pick(&places);
    const SlotPlace b = *dice->Pick(&places);
    if (a.segment != b.segment || a.slot().formal != b.slot().formal ||
        a.slot().offset == b.slot().offset || a.slot().bytes != b.slot().bytes) {
      continue;
    }
    std::swap(a.slot().offset, b.slot().offset);
    *what = absl::StrCat(a.Name(), " and ", b.slot().name);
    return true;
  }
  return false;
}

bool FormalChanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> places = SlotsInUse(plan);
  const SlotPlace place = *dice->Pick(&places);
  const int formals = static_cast<int>(place.segment->formals.size());
  if (formals < 2) return false;
  place.slot().formal =
      (place.slot().formal + 1 + static_cast<int>(dice->Below(static_cast<size_t>(formals - 1)))) %
      formals;
  *what = absl::StrCat(place.Name(), " to ",
                       ToString(place.segment->formals[static_cast<size_t>(place.slot().formal)]));
  return true;
}

// What forward keeps for backward lies in memory that dies with the segment.
bool KeptInTransient(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> kept;
  for (const SlotPlace& place : SlotsInUse(plan)) {
    const Formal& formal = place.segment->formals[static_cast<size_t>(place.slot().formal)];
    if (formal.region == Region::kFrame && place.slot().bytes <= place.segment->transient_bytes) {
      kept.push_back(place);
    }
  }
  const SlotPlace* place = dice->Pick(&kept);
  if (place == nullptr) return false;
  place->slot().formal = 0;
  place->slot().offset = 0;
  *what = place->Name();
  return true;
}

bool RoomChanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<SlotPlace> places = SlotsInUse(plan);
  const SlotPlace place = *dice->Pick(&places);
  place.slot().bytes += dice->Flip() ? 64 : -4;
  *what = place.Name();
  return place.slot().bytes >= 0;
}

}  // namespace

std::vector<MutationKind> SlotMutations() {
  return {
      OtherSlot("operand taken from another slot", &Instr::inputs),
      OtherSlot("result put into another slot", &Instr::outputs),
      SlotsSwapped("operands exchanged", &Instr::inputs),
      SlotsSwapped("results exchanged", &Instr::outputs),
      {"slot's offset off", OffsetShifted},
      {"slot laid over another", Overlapped},
      {"slots exchange places", PlacesSwapped},
      {"slot behind another formal", FormalChanged},
      {"kept value in transient memory", KeptInTransient},
      {"slot's room changed", RoomChanged},
  };
}

}  // namespace mgc
