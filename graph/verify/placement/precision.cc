#include "graph/verify/placement/precision.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "graph/plan/instr_collective.h"
#include "graph/verify/placement/placement_segment.h"

namespace mgc {
namespace {

bool IsNarrow(const Slot& slot) { return WideOf(slot.type.dtype) != slot.type.dtype; }

// Whether the region holds what lives on behind a micro-batch.
bool LivesOn(Region region) {
  switch (region) {
    case Region::kParams:
    case Region::kGrads:
    case Region::kStates:
    case Region::kNorm:
    case Region::kGlobals:
      return true;
    case Region::kTransient:
    case Region::kCopies:
    case Region::kGathered:
    case Region::kOwed:
    case Region::kFrame:
    case Region::kInput:
    case Region::kOutput:
    case Region::kGradInput:
    case Region::kGradOutput:
      return false;
  }
  return true;
}

// What lives on of a model that is asked: parameters, and the keys and values that are kept.
bool MayBeHeldNarrow(Region region) {
  return region == Region::kParams || region == Region::kStates;
}

// What a segment does with a slot.
struct SlotUse {
  bool is_made = false;
  bool is_summed = false;    // an operand or the result of a sum over data
  bool only_travels = true;  // made and read by nothing but such sums and casts
};

class PrecisionCheck {
 public:
  PrecisionCheck(const Plan& plan, const Segment& segment, bool of_update, Diagnostics* findings)
      : plan_(plan),
        segment_(segment),
        of_update_(of_update),
        is_asked_(IsAsked(plan.model)),
        findings_(*findings) {}

  void Run() {
    FindUses();
    CheckSlots();
    for (size_t i = 0; i < segment_.instrs.size(); ++i) {
      const Instr& instr = segment_.instrs[i];
      if (IsSumOverData(instr) && (of_update_ || MakesPieces(instr))) CheckSum(i);
      if (instr.kind != InstrKind::kCompute) continue;
      if (instr.op->precision == Precision::kWide) CheckWide(i);
      if (instr.op->Has(OpRole::kCast)) CheckCast(i);
      if (instr.op->Has(OpRole::kCollect)) CheckCollected(i);
    }
  }

 private:
  const Slot& SlotAt(int slot) const { return segment_.slots[static_cast<size_t>(slot)]; }
  std::string Shown(const Slot& slot) const {
    return absl::StrCat("%", EscapeBytes(slot.name), " of ", NameOf(slot.type.dtype));
  }

  // Whether the instruction pays a sum over ranks that hold other data.
  bool IsSumOverData(const Instr& instr) const {
    if (instr.kind != InstrKind::kStart || JoinsClasses(instr)) return false;
    const InstrCollective collective = CollectiveOf(plan_.mesh, plan_.stages, segment_, instr);
    return PaysOverData(collective.parts[0], plan_.mesh);
  }

  // What becomes pieces of stored parameters is the sum of a gradient, in backward too.
  bool MakesPieces(const Instr& instr) const {
    return !SlotAt(instr.outputs[0]).sharding.storage.empty();
  }

  void CheckSum(size_t index) {
    for (const int slot : segment_.instrs[index].inputs) {
      const DType dtype = SlotAt(slot).type.dtype;
      if (WideOf(dtype) != DType::kF32 || dtype == plan_.gradient_sums) continue;
      findings_.Add("placement_v17", PlaceOf(plan_, segment_, index),
                    absl::StrCat("sums ", Shown(SlotAt(slot)),
                                 " over ranks that hold other data; the plan says ",
                                 NameOf(plan_.gradient_sums)));
    }
  }

  void FindUses() {
    uses_.resize(segment_.slots.size());
    for (const Instr& instr : segment_.instrs) {
      const bool summed = IsSumOverData(instr);
      const bool travels =
          summed || (instr.kind == InstrKind::kCompute && instr.op->Has(OpRole::kCast));
      for (const std::vector<int>* slots : {&instr.inputs, &instr.outputs}) {
        for (const int slot : *slots) {
          SlotUse& use = uses_[static_cast<size_t>(slot)];
          use.is_made |= slots == &instr.outputs;
          use.is_summed |= summed;
          use.only_travels &= travels;
        }
      }
    }
  }

  // Whether a narrow slot is nothing but a gradient on its way through a sum over data: rounded for
  // it and widened behind it.
  bool IsOnItsWay(int slot) const {
    const Region region = segment_.formals[static_cast<size_t>(SlotAt(slot).formal)].region;
    const bool fits = region == Region::kGrads || region == Region::kTransient;
    if (!of_update_ || !fits || SlotAt(slot).type.dtype != plan_.gradient_sums) return false;
    const SlotUse& use = uses_[static_cast<size_t>(slot)];
    return use.only_travels && (use.is_summed || !use.is_made);
  }

  void CheckSlots() {
    for (size_t s = 0; s < segment_.slots.size(); ++s) {
      const Slot& slot = segment_.slots[s];
      const Formal& formal = segment_.formals[static_cast<size_t>(slot.formal)];
      if (!IsNarrow(slot) || !(of_update_ || LivesOn(formal.region))) continue;
      if (IsOnItsWay(static_cast<int>(s))) continue;
      if (is_asked_ && MayBeHeldNarrow(formal.region)) continue;
      findings_.Add("placement_v14", absl::StrCat("segment ", EscapeBytes(segment_.name)),
                    absl::StrCat(Shown(slot), " in ", EscapeBytes(ToString(formal)),
                                 ": what lives on, and all that the update computes with, is of "
                                 "f32 or wider"));
    }
  }

  void CheckWide(size_t index) {
    const Instr& instr = segment_.instrs[index];
    for (const std::vector<int>* slots : {&instr.inputs, &instr.outputs}) {
      const auto narrow = std::find_if(slots->begin(), slots->end(),
                                       [&](int slot) { return IsNarrow(SlotAt(slot)); });
      if (narrow == slots->end()) continue;
      findings_.Add("placement_v15", PlaceOf(plan_, segment_, index),
                    absl::StrCat(slots == &instr.inputs ? "reads " : "makes ",
                                 Shown(SlotAt(*narrow)), "; it is computed in f32 or wider"));
    }
  }

  // The instruction that makes an operand of `index`; null where none of the segment does.
  const Instr* MakerOf(size_t index, int slot, size_t* at) const {
    for (*at = index; (*at)-- > 0;) {
      const Instr& instr = segment_.instrs[*at];
      const std::vector<int>& outputs = instr.outputs;
      if (std::find(outputs.begin(), outputs.end(), slot) != outputs.end()) {
        return instr.kind == InstrKind::kCompute ? &instr : nullptr;
      }
    }
    return nullptr;
  }

  static bool IsCast(const Instr* instr) {
    return instr != nullptr && instr->op->Has(OpRole::kCast);
  }

  // What made the narrow value that a cast widens; null where that is not of the segment.
  const Instr* Rounded(size_t cast) const {
    const int from = segment_.instrs[cast].inputs[0];
    size_t at = 0;
    return IsNarrow(SlotAt(from)) ? MakerOf(cast, from, &at) : nullptr;
  }

  void CheckCast(size_t index) {
    const Slot& narrow = SlotAt(segment_.instrs[index].inputs[0]);
    const Formal& formal = segment_.formals[static_cast<size_t>(narrow.formal)];
    const bool is_held = formal.region == Region::kCopies || formal.region == Region::kGathered ||
                         MayBeHeldNarrow(formal.region);
    if (IsNarrow(narrow) && is_held) {
      findings_.Add(
          "placement_v14", PlaceOf(plan_, segment_, index),
          absl::StrCat("widens ", Shown(narrow),
                       ", which is held, or a copy of what is held, and is wanted in f32"));
    }
    const Instr* rounded = Rounded(index);
    if (!IsCast(rounded)) return;
    const Slot& from = SlotAt(rounded->inputs[0]);
    if (!LivesOn(segment_.formals[static_cast<size_t>(from.formal)].region)) return;
    findings_.Add("placement_v14", PlaceOf(plan_, segment_, index),
                  absl::StrCat("widens what is left of ", Shown(from), ", which lives on in f32"));
  }

  void CheckCollected(size_t index) {
    size_t cast = 0;
    if (!IsCast(MakerOf(index, segment_.instrs[index].inputs[1], &cast))) return;
    const Instr* maker = Rounded(cast);
    if (maker == nullptr || !(IsCast(maker) || MayAskForWide(*maker->op))) return;
    findings_.Add("placement_v16", PlaceOf(plan_, segment_, index),
                  absl::StrCat("joins ", Shown(SlotAt(segment_.instrs[cast].inputs[0])), ", which ",
                               maker->op->name, " has rounded before"));
  }

  const Plan& plan_;
  const Segment& segment_;
  const bool of_update_;
  const bool is_asked_;
  Diagnostics& findings_;
  std::vector<SlotUse> uses_;  // by slot
};

}  // namespace

void CheckPrecision(const Plan& plan, const Segment& segment, bool of_update,
                    Diagnostics* findings) {
  PrecisionCheck(plan, segment, of_update, findings).Run();
}

}  // namespace mgc
