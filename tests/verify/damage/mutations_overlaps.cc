// Damage that stays consistent with itself: memory that is used twice, with everybody who reads it
// moved along and all stated numbers of bytes right.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

// Where a block of the class lies: parameters, moments or gradients.
int64_t PickBlockBase(PlanClass* c, Dice* dice) {
  const HeldBlock* held = dice->Pick(&c->blocks);
  if (held == nullptr) return -1;
  const int64_t bases[] = {held->param_base, held->state_base, held->grad_base};
  return bases[dice->Below(3)];
}

bool HasFormal(const Segment& segment, const Slot& slot, Region region) {
  return segment.formals[static_cast<size_t>(slot.formal)] == Formal{region, ""};
}

// A value of an update, or of an evaluation's end, stands in a block for everybody.
MutationKind InsideBlock(const char* name, std::vector<Call> PlanClass::*list,
                         std::vector<NamedAddress> PlanClass::*reports) {
  return {name, [list, reports](Plan* plan, Dice* dice, std::string* what) {
            PlanClass* c = dice->Pick(&plan->classes);
            const Call* picked = dice->Pick(&(c->*list));
            if (picked == nullptr) return false;
            Segment& first = plan->segments[static_cast<size_t>(picked->segment)];
            const Slot* slot = dice->Pick(&first.slots);
            if (slot == nullptr || !HasFormal(first, *slot, Region::kGlobals)) return false;
            const int64_t old = slot->offset;
            const int64_t base = picked->bindings[static_cast<size_t>(slot->formal)].offset;
            const int64_t target = PickBlockBase(c, dice);
            if (target < base || target + slot->bytes > c->memory.peak) return false;
            *what = absl::StrCat(first.name, ", `", slot->name, "` to ", target);
            for (const Call& call : c->*list) {
              Segment& segment = plan->segments[static_cast<size_t>(call.segment)];
              for (Slot& other : segment.slots) {
                if (!HasFormal(segment, other, Region::kGlobals) || other.offset != old) continue;
                other.offset = target - base;
              }
            }
            for (NamedAddress& report : c->*reports) {
              if (report.address == base + old) report.address = target;
            }
            return true;
          }};
}

// An inbox or outbox of one micro-batch, neither of the first two nor the last, lies in a block.
MutationKind BoundaryInBlock(const char* name, TransferKind kind, int64_t Action::*address) {
  return {name, [kind, address](Plan* plan, Dice* dice, std::string* what) {
            if (plan->num_micro_batches < 4) return false;
            const int64_t m =
                2 +
                static_cast<int64_t>(dice->Below(static_cast<size_t>(plan->num_micro_batches - 3)));
            PlanClass* c = dice->Pick(&plan->classes);
            const int chunk = static_cast<int>(dice->Below(c->chunks.size()));
            Transfer* transfer = FindTransfer(&c->train, kind, chunk, m);
            const int64_t target = PickBlockBase(c, dice);
            if (transfer == nullptr || target < 0) return false;
            const int64_t old = transfer->address;
            transfer->address = target;
            for (Action& action : c->train.compute) {
              const bool same = action.ref.chunk == chunk && action.ref.micro_batch == m;
              if (same && action.*address == old) action.*address = target;
            }
            const int64_t room = (transfer->bytes + 63) / 64 * 64;
            c->memory.boundaries += room;
            c->zeroed.push_back({c->memory.peak, c->memory.peak + room});
            c->memory.peak += room;
            *what = absl::StrCat("class ", c->coordinate, ", ", NameOf(transfer->ref, c->chunks));
            return true;
          }};
}

bool IsReadAfter(const Segment& segment, size_t index, int slot) {
  return std::any_of(segment.instrs.begin() + static_cast<int64_t>(index) + 1, segment.instrs.end(),
                     [slot](const Instr& instr) {
                       return std::count(instr.inputs.begin(), instr.inputs.end(), slot) > 0;
                     });
}

// A result takes the place of an operand that is not read again.
bool ResultOverOperand(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, IsCompute());
  for (int tries = 0; tries < 200; ++tries) {
    const InstrPlace place = *dice->Pick(&places);
    const Instr& instr = place.instr();
    if (instr.inputs.empty() || instr.outputs.empty()) continue;
    const size_t k = dice->Below(instr.inputs.size());
    const Slot& operand = place.in(k);
    Slot& result = place.out(0);
    if (operand.formal != 0 || result.formal != 0 || operand.bytes != result.bytes) continue;
    if (operand.offset == result.offset) continue;
    if (IsReadAfter(*place.segment, place.index, instr.inputs[k])) continue;
    *what = absl::StrCat(place.Name(), ", `", result.name, "` over `", operand.name, "`");
    result.offset = operand.offset;
    return true;
  }
  return false;
}

// What a bucket of the first reduction takes.
bool IsSum(const Slot& slot) {
  return absl::EndsWith(slot.name, "/grad") || absl::EndsWith(slot.name, "/grad.next");
}

// Of a bucket of gradients two results exchange their places, and all readers follow.
bool BucketResultsExchanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, IsStart());
  for (int tries = 0; tries < 100 && !places.empty(); ++tries) {
    const InstrPlace place = *dice->Pick(&places);
    const size_t n = place.instr().outputs.size();
    if (n < 2) continue;
    const size_t i = dice->Below(n);
    const size_t j = dice->Below(n);
    const int64_t a = place.out(i).offset;
    const int64_t b = place.out(j).offset;
    const bool alike =
        place.out(i).bytes == place.out(j).bytes && place.out(i).formal == place.out(j).formal &&
        place.in(i).formal == place.out(i).formal && place.in(j).formal == place.out(j).formal &&
        place.in(i).offset == a && place.in(j).offset == b;
    if (a == b || !alike || !IsSum(place.in(i)) || !IsSum(place.in(j)) ||
        !HasFormal(*place.segment, place.out(i), Region::kGrads))
      continue;
    const std::string layer = place.segment->name.substr(0, place.segment->name.find('.') + 1);
    const auto other = [a, b](int64_t at) { return at == a ? b : at == b ? a : at; };
    *what = absl::StrCat(place.Name(), ", results ", i, " and ", j);
    for (Segment& segment : plan->segments) {
      if (!absl::StartsWith(segment.name, layer)) continue;
      for (Slot& slot : segment.slots) {
        if (HasFormal(segment, slot, Region::kGrads) && !IsSum(slot))
          slot.offset = other(slot.offset);
      }
    }
    for (ParamBlock& block : plan->blocks) {
      if (absl::StrCat(block.name, ".") != layer) continue;
      for (ParamEntry& entry : block.entries) entry.gradient_offset = other(entry.gradient_offset);
    }
    return true;
  }
  return false;
}

}  // namespace

std::vector<MutationKind> OverlapMutations() {
  return {
      InsideBlock("value of the update in a block", &PlanClass::update, &PlanClass::reports),
      InsideBlock("value of the evaluation in a block", &PlanClass::eval_update,
                  &PlanClass::eval_reports),
      BoundaryInBlock("inbox in a block", TransferKind::kRecvForward, &Action::input),
      BoundaryInBlock("outbox in a block", TransferKind::kSendForward, &Action::output),
      BoundaryInBlock("gradient's inbox in a block", TransferKind::kRecvBackward,
                      &Action::grad_input),
      {"result over an operand", ResultOverOperand},
      {"bucket's results exchanged", BucketResultsExchanged},
  };
}

}  // namespace mgc
