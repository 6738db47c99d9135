// Context parallelism: what is gathered of keys and values, and where their gradients go back to.

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/plan/instr_collective.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

// One part of a start: its operand and its result.
struct Part {
  InstrPlace place;
  size_t part = 0;

  Slot& from() const { return place.in(part); }
  Slot& to() const { return place.out(part); }
  AxisSet axes() const {
    const absl::StatusOr<Collective> collective =
        CollectiveOfPart(*place.segment, place.instr(), part);
    return collective.ok() ? collective->axes.AsSet() : AxisSet();
  }
};

std::vector<Part> PartsOf(Plan* plan, absl::string_view op) {
  std::vector<Part> parts;
  for (const InstrPlace& place : InstrsWhere(plan, IsStartOf(op))) {
    if (JoinsClasses(place.instr())) continue;
    for (size_t part = 0; part < place.instr().inputs.size(); ++part)
      parts.push_back({place, part});
  }
  return parts;
}

bool PickPart(Plan* plan, Dice* dice, absl::string_view op, Part* part, std::string* what) {
  std::vector<Part> parts = PartsOf(plan, op);
  if (parts.empty()) return false;
  *part = *dice->Pick(&parts);
  *what = absl::StrCat(part->place.Name(), ", part ", part->part);
  return true;
}

// The dim whose cuts a gather or a scatter changes.
bool DimOf(const Part& part, size_t* dim) {
  const Sharding& from = part.from().sharding;
  const Sharding& to = part.to().sharding;
  for (size_t d = 0; d < from.dims.size() && d < to.dims.size(); ++d) {
    *dim = d;
    if (from.dims[d] != to.dims[d]) return true;
  }
  return false;
}

AxisList Without(const AxisList& axes, AxisId gone) {
  AxisList left;
  for (AxisId axis : axes) {
    if (axis != gone) left.push_back(axis);
  }
  return left;
}

// An axis is missing: what still is cut over it is called whole, before the gather and after it.
bool GatherMissesAnAxis(Plan* plan, Dice* dice, std::string* what) {
  Part part;
  size_t dim = 0;
  if (!PickPart(plan, dice, "all_gather", &part, what) || !DimOf(part, &dim)) return false;
  AxisList& cut = part.from().sharding.dims[dim];
  if (cut.empty()) return false;
  cut = Without(cut, *cut.begin());
  return true;
}

// The result stays cut over an axis that the next op takes for gathered.
bool GatherLeavesACut(Plan* plan, Dice* dice, std::string* what) {
  Part part;
  size_t dim = 0;
  if (!PickPart(plan, dice, "all_gather", &part, what) || !DimOf(part, &dim)) return false;
  part.to().sharding.dims[dim] = part.from().sharding.dims[dim];
  return true;
}

// Pieces are put along another dim of the same tensor, in and out.
bool AlongAnotherDim(Plan* plan, Dice* dice, std::string* what) {
  Part part;
  size_t dim = 0;
  const char* op = dice->Flip() ? "all_gather" : "reduce_scatter";
  if (!PickPart(plan, dice, op, &part, what) || !DimOf(part, &dim)) return false;
  const size_t dims = part.from().sharding.dims.size();
  if (dims < 2) return false;
  const size_t other = (dim + 1 + dice->Below(dims - 1)) % dims;
  for (Slot* slot : {&part.from(), &part.to()}) {
    std::swap(slot->sharding.dims[dim], slot->sharding.dims[other]);
  }
  return true;
}

// A gradient's sum is paid over another axis than it is owed over, and everybody says so.
bool ScatteredOverAnotherAxis(Plan* plan, Dice* dice, std::string* what) {
  Part part;
  if (!PickPart(plan, dice, "reduce_scatter", &part, what)) return false;
  const AxisSet axes = part.axes();
  if (axes.empty()) return false;
  const AxisId from = *axes.begin();
  const AxisId to = static_cast<AxisId>(dice->Below(static_cast<size_t>(plan->mesh.num_axes())));
  if (axes.Contains(to)) return false;
  const auto moved = [&](AxisSet set) {
    if (set.Contains(from)) {
      set.Remove(from);
      set.Add(to);
    }
    return set;
  };
  for (Slot& slot : part.place.segment->slots) {
    if (slot.name != part.from().name && slot.name != part.to().name) continue;
    slot.sharding.sum = moved(slot.sharding.sum);
    for (AxisList& list : slot.sharding.dims) {
      AxisList renamed;
      for (AxisId axis : list) renamed.push_back(axis == from ? to : axis);
      list = renamed;
    }
  }
  return true;
}

// Keys of one gather, values of another: two gathered tensors of one type change places.
bool GatheredExchanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<Part> parts = PartsOf(plan, "all_gather");
  if (parts.size() < 2) return false;
  const Part a = *dice->Pick(&parts);
  const Part b = *dice->Pick(&parts);
  const bool same = a.place.segment == b.place.segment && a.from().type == b.from().type &&
                    a.from().sharding == b.from().sharding && a.to().sharding == b.to().sharding;
  int& first = a.place.instr().outputs[a.part];
  int& second = b.place.instr().outputs[b.part];
  if (!same || first == second) return false;
  *what = absl::StrCat(a.place.Name(), " and ", b.place.Name());
  std::swap(first, second);
  return true;
}

// Positions are those of the whole sequence, or of the piece of another axis' coordinate.
bool PositionsOfAnotherPiece(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places =
      InstrsWhere(plan, [](const Segment& segment, const Instr& instr) {
        if (instr.kind != InstrKind::kCompute || instr.outputs.empty()) return false;
        const Slot& slot = segment.slots[static_cast<size_t>(instr.outputs[0])];
        return slot.type.dtype == DType::kI64 && slot.type.ndim() == 1 &&
               !slot.sharding.dims[0].empty();
      });
  const InstrPlace* place = dice->Pick(&places);
  if (place == nullptr || plan->mesh.num_axes() < 2) return false;
  *what = place->Name();
  AxisList& cut = place->out(0).sharding.dims[0];
  const AxisId axis = *cut.begin();
  cut = Without(cut, axis);
  if (dice->Flip()) cut.push_back(static_cast<AxisId>((axis + 1) % plan->mesh.num_axes()));
  return true;
}

}  // namespace

std::vector<MutationKind> ContextMutations() {
  return {
      {"gather misses an axis", GatherMissesAnAxis},
      {"gather leaves a cut", GatherLeavesACut},
      {"pieces along another dim", AlongAnotherDim},
      {"gradient scattered over another axis", ScatteredOverAnotherAxis},
      {"gathered tensors exchanged", GatheredExchanged},
      {"positions of another piece", PositionsOfAnotherPiece},
  };
}

}  // namespace mgc
