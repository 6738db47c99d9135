// Collectives whose results lie where other ranks still read: in place, with rooms made equal, or
// across.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

// One part of a collective that has no other place already.
bool PickPart(Plan* plan, Dice* dice, const InstrFilter& filter, InstrPlace* place, size_t* part) {
  std::vector<InstrPlace> places = InstrsWhere(plan, filter);
  for (int tries = 0; tries < 50 && !places.empty(); ++tries) {
    *place = *dice->Pick(&places);
    *part = dice->Below(place->instr().outputs.size());
    const Slot& in = place->in(*part);
    const Slot& out = place->out(*part);
    if (in.formal != out.formal || in.offset != out.offset) return true;
  }
  return false;
}

// Both at the place of one of them, with the room of the larger.
void Join(Slot* moved, Slot* kept) {
  moved->formal = kept->formal;
  moved->offset = kept->offset;
  moved->bytes = kept->bytes = std::max(moved->bytes, kept->bytes);
}

MutationKind ResultOverOperand(const char* name, const char* op) {
  return {name,
          [op](Plan* plan, Dice* dice, std::string* what) {
            InstrPlace place;
            size_t part = 0;
            if (!PickPart(plan, dice, IsStartOf(op), &place, &part)) return false;
            *what = absl::StrCat(place.Name(), ", `", place.out(part).name, "`");
            Join(&place.out(part), &place.in(part));
            return true;
          },
          3};
}

MutationKind OperandUnderResult(const char* name, const char* op) {
  return {name,
          [op](Plan* plan, Dice* dice, std::string* what) {
            InstrPlace place;
            size_t part = 0;
            if (!PickPart(plan, dice, IsStartOf(op), &place, &part)) return false;
            *what = absl::StrCat(place.Name(), ", `", place.in(part).name, "`");
            Join(&place.in(part), &place.out(part));
            return true;
          },
          3};
}

// A result begins within an operand.
bool Across(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, IsStart());
  for (int tries = 0; tries < 50 && !places.empty(); ++tries) {
    const InstrPlace place = *dice->Pick(&places);
    const size_t part = dice->Below(place.instr().outputs.size());
    Slot& in = place.in(part);
    Slot& out = place.out(part);
    if (in.bytes <= 64 || &in == &out) continue;
    out.formal = in.formal;
    out.offset = in.offset + 64;
    *what = absl::StrCat(place.Name(), ", `", out.name, "`");
    return true;
  }
  return false;
}

// Of a bucket, the result of one part lies over the operand of another.
bool OverAnother(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, [](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kStart && instr.outputs.size() > 1;
  });
  for (int tries = 0; tries < 50 && !places.empty(); ++tries) {
    const InstrPlace place = *dice->Pick(&places);
    const size_t n = place.instr().outputs.size();
    const size_t i = dice->Below(n);
    const size_t k = (i + 1 + dice->Below(n - 1)) % n;
    if (place.instr().outputs[i] == place.instr().inputs[k]) continue;
    Join(&place.out(i), &place.in(k));
    *what = absl::StrCat(place.Name(), ", `", place.out(i).name, "` over part ", k);
    return true;
  }
  return false;
}

// A local op that cuts or copies writes over what it reads.
MutationKind LocalOverOperand(const char* name, const char* op) {
  return {name,
          [op](Plan* plan, Dice* dice, std::string* what) {
            InstrPlace place;
            size_t part = 0;
            if (!PickPart(plan, dice, IsComputeOf(op), &place, &part)) return false;
            *what = absl::StrCat(place.Name(), ", `", place.out(part).name, "`");
            Join(&place.out(part), &place.in(part));
            return true;
          },
          3};
}

}  // namespace

std::vector<MutationKind> InPlaceMutations() {
  return {
      ResultOverOperand("all_gather over its operand", "all_gather"),
      ResultOverOperand("reduce_scatter over its operand", "reduce_scatter"),
      ResultOverOperand("all_reduce over its operand", "all_reduce"),
      OperandUnderResult("all_gather from its result's place", "all_gather"),
      OperandUnderResult("reduce_scatter from its result's place", "reduce_scatter"),
      {"result of a collective across an operand", Across, 3},
      {"part of a bucket over another", OverAnother, 3},
      LocalOverOperand("slice over its operand", "shard_slice"),
  };
}

}  // namespace mgc
