#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

bool ComputesOrLoads(const Segment&, const Instr& instr) {
  return instr.kind == InstrKind::kCompute || instr.kind == InstrKind::kLoad;
}

bool Dropped(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, ComputesOrLoads, &place, what)) return false;
  Remove(place.segment, place.index);
  return true;
}

// What read its result reads its operand of the same type: a dropout or a division left out.
bool Bypassed(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter keeps_type = [](const Segment& segment, const Instr& instr) {
    if (instr.kind != InstrKind::kCompute || instr.inputs.empty()) return false;
    return instr.outputs.size() == 1 &&
           segment.slots[static_cast<size_t>(instr.inputs[0])].type ==
               segment.slots[static_cast<size_t>(instr.outputs[0])].type;
  };
  if (!PickPlace(plan, dice, keeps_type, &place, what)) return false;
  Skip(place.segment, place.index);
  return true;
}

// A copy of an operand takes the place of what was computed.
bool MadeACopy(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<InstrPlace, size_t>> places;
  for (const InstrPlace& place : InstrsWhere(plan, IsCompute())) {
    const Instr& instr = place.instr();
    if (instr.outputs.size() != 1 || instr.op->name == "reshard") continue;
    for (size_t k = 0; k < instr.inputs.size(); ++k) {
      if (place.in(k).type == place.out(0).type) places.emplace_back(place, k);
    }
  }
  const auto* picked = dice->Pick(&places);
  if (picked == nullptr) return false;
  const auto& [place, k] = *picked;
  *what = absl::StrCat(place.Name(), " becomes a copy of operand ", k);
  Instr& instr = place.instr();
  if (instr.op->collective) place.in(k).sharding = place.out(0).sharding;
  instr.op = FindOp("reshard");
  instr.attrs = {};
  instr.inputs = {instr.inputs[k]};
  return true;
}

// An accumulator is overwritten by the last contribution.
bool Overwritten(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter accumulates = [](const Segment&, const Instr& instr) {
    return instr.kind == InstrKind::kCompute && absl::EndsWith(instr.op->name, "accumulate");
  };
  if (!PickPlace(plan, dice, accumulates, &place, what)) return false;
  Instr& instr = place.instr();
  instr.inputs.erase(instr.inputs.begin());
  if (instr.op->name == "accumulate") {
    instr.op = FindOp("reshard");
  } else if (instr.op->name == "matmul_accumulate") {
    instr.op = FindOp("matmul");
  } else {
    return false;
  }
  return true;
}

bool Doubled(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickPlace(plan, dice, IsCompute(), &place, what)) return false;
  std::vector<Instr>& instrs = place.segment->instrs;
  const Instr again = place.instr();
  instrs.insert(instrs.begin() + static_cast<int64_t>(place.index), again);
  return true;
}

// Runs once more on its own result: a division by the token count done twice.
bool Repeated(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter keeps_type = [](const Segment& segment, const Instr& instr) {
    if (instr.kind != InstrKind::kCompute || instr.inputs.empty() || instr.op->collective) {
      return false;
    }
    const Slot& first = segment.slots[static_cast<size_t>(instr.inputs[0])];
    // The gradient of a key's bias is zero but for rounding: added twice it changes bits alone.
    const bool adds_zero =
        instr.op->Has(OpRole::kCollect) && absl::StrContains(first.name, "attention.k.bias");
    return !adds_zero && first.type == segment.slots[static_cast<size_t>(instr.outputs[0])].type;
  };
  if (!PickPlace(plan, dice, keeps_type, &place, what)) return false;
  Instr again = place.instr();
  again.inputs[0] = again.outputs[0];
  std::vector<Instr>& instrs = place.segment->instrs;
  instrs.insert(instrs.begin() + static_cast<int64_t>(place.index) + 1, again);
  return again.op->name != "reshard";
}

bool SwappedWithNext(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places;
  for (const InstrPlace& place : InstrsWhere(plan, ComputesOrLoads)) {
    const std::vector<Instr>& instrs = place.segment->instrs;
    if (place.index + 1 >= instrs.size()) continue;
    // What follows reads it, else nothing changes but the order of two independent instructions.
    const Instr& next = instrs[place.index + 1];
    for (int slot : place.instr().outputs) {
      if (std::count(next.inputs.begin(), next.inputs.end(), slot) > 0) {
        places.push_back(place);
        break;
      }
    }
  }
  const InstrPlace* place = dice->Pick(&places);
  if (place == nullptr) return false;
  *what = place->Name();
  std::swap(place->segment->instrs[place->index], place->segment->instrs[place->index + 1]);
  Renumber(place->segment);
  return true;
}

// An op becomes another that makes the same types.
bool OtherOp(Plan* plan, Dice* dice, std::string* what) {
  const std::pair<const char*, const char*> pairs[] = {
      {"add", "sub"},
      {"add", "mul"},
      {"mul", "add"},
      {"sub", "add"},
      {"bias_gelu", "add"},
      {"gelu", "relu"},
      {"inv", "sqrt"},
      {"sqrt", "inv"},
      {"sum_squares", "total"},
      {"total", "sum_squares"},
      {"swiglu", "mul"},
      {"clip_scale", "mul"},
      {"log_shift", "sub"},
      {"reduce_max", "reduce_sum"},
      {"accumulate", "sub"},
      {"layer_norm_grad", "rms_norm_grad"},
      {"shard_slice", "reshard"},
      {"lift", "reshard"},
      {"dropout", "reshard"},
      {"scale", "reshard"},
  };
  std::vector<std::pair<InstrPlace, const char*>> places;
  for (const auto& [from, to] : pairs) {
    if (FindOp(to) == nullptr) continue;
    for (const InstrPlace& place : InstrsWhere(plan, IsComputeOf(from))) {
      places.emplace_back(place, to);
    }
  }
  const auto* picked = dice->Pick(&places);
  if (picked == nullptr) return false;
  *what = absl::StrCat(picked->first.Name(), " becomes ", picked->second);
  Instr& instr = picked->first.instr();
  instr.op = FindOp(picked->second);
  if (instr.op->attrs.empty() || absl::string_view(picked->second) == "reshard") instr.attrs = {};
  return true;
}

// A square of the norm is not written to its entry, or one of a replicated parameter counts on
// every rank.
bool NormEntry(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter writes_norm = [](const Segment& segment, const Instr& instr) {
    if (instr.kind != InstrKind::kCompute || instr.outputs.empty()) return false;
    const Slot& to = segment.slots[static_cast<size_t>(instr.outputs[0])];
    return segment.formals[static_cast<size_t>(to.formal)].region == Region::kNorm;
  };
  if (!PickPlace(plan, dice, writes_norm, &place, what)) return false;
  if (place.instr().op->name == "lift" && dice->Flip()) {
    place.in(0).sharding = place.out(0).sharding;
    place.instr().op = FindOp("reshard");
    place.instr().attrs = {};
    absl::StrAppend(what, ", counted by every rank");
    return true;
  }
  Remove(place.segment, place.index);
  return true;
}

}  // namespace

std::vector<MutationKind> InstrMutations() {
  return {
      {"instruction dropped", Dropped},
      {"instruction bypassed", Bypassed},
      {"instruction made a copy", MadeACopy},
      {"accumulator overwritten", Overwritten},
      {"instruction doubled", Doubled},
      {"instruction repeated on its result", Repeated},
      {"instruction before its operand", SwappedWithNext},
      {"another op", OtherOp},
      {"norm's entry dropped or counted twice", NormEntry},
  };
}

}  // namespace mgc
