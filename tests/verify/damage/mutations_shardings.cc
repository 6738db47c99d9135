#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

using ChangeSharding = std::function<bool(const Mesh&, Dice*, Sharding*)>;

// Changes the sharding of one slot. A few places are tried, since few slots owe or store anything.
MutationKind OnSlot(const char* name, ChangeSharding change) {
  return {name, [change = std::move(change)](Plan* plan, Dice* dice, std::string* what) {
            std::vector<SlotPlace> places = SlotsInUse(plan);
            for (int tries = 0; tries < 30 && !places.empty(); ++tries) {
              const SlotPlace place = *dice->Pick(&places);
              const std::string before = ToString(place.slot().sharding, plan->mesh);
              if (!change(plan->mesh, dice, &place.slot().sharding)) continue;
              *what = absl::StrCat(place.Name(), ", ", before, " becomes ",
                                   ToString(place.slot().sharding, plan->mesh));
              return true;
            }
            return false;
          }};
}

AxisId AnyOf(AxisSet axes, Dice* dice) {
  size_t nth = dice->Below(static_cast<size_t>(axes.size()));
  for (AxisId axis : axes) {
    if (nth-- == 0) return axis;
  }
  return 0;
}

bool DropSum(const Mesh&, Dice* dice, Sharding* sharding) {
  if (sharding->sum.empty()) return false;
  sharding->sum.Remove(AnyOf(sharding->sum, dice));
  return true;
}

bool AddSum(const Mesh& mesh, Dice* dice, Sharding* sharding) {
  const AxisSet free = mesh.AllAxes() - sharding->UsedAxes();
  if (free.empty()) return false;
  sharding->sum.Add(AnyOf(free, dice));
  return true;
}

bool SumToMax(const Mesh&, Dice*, Sharding* sharding) {
  if (sharding->Owed().empty()) return false;
  std::swap(sharding->sum, sharding->max);
  return true;
}

bool MoveToOtherDim(const Mesh&, Dice* dice, Sharding* sharding) {
  std::vector<size_t> cut;
  for (size_t d = 0; d < sharding->dims.size(); ++d) {
    if (!sharding->dims[d].empty()) cut.push_back(d);
  }
  if (cut.empty() || sharding->dims.size() < 2) return false;
  const size_t from = *dice->Pick(&cut);
  const size_t to = (from + 1 + dice->Below(sharding->dims.size() - 1)) % sharding->dims.size();
  std::swap(sharding->dims[from], sharding->dims[to]);
  return true;
}

bool StorageToSum(const Mesh&, Dice*, Sharding* sharding) {
  if (sharding->storage.empty()) return false;
  sharding->sum |= sharding->storage.AsSet();
  sharding->storage.clear();
  return true;
}

bool StorageAndDimSwapped(const Mesh&, Dice*, Sharding* sharding) {
  for (AxisList& axes : sharding->dims) {
    if (axes.empty() || sharding->storage.empty()) continue;
    std::swap(axes, sharding->storage);
    return true;
  }
  return false;
}

AxisList Reversed(const AxisList& axes) {
  AxisList reversed;
  for (int i = axes.size() - 1; i >= 0; --i) reversed.push_back(axes[i]);
  return reversed;
}

// Major and minor axes of a dim exchanged: each rank has the tile of another.
bool OrderReversed(const Mesh&, Dice*, Sharding* sharding) {
  for (AxisList& axes : sharding->dims) {
    if (axes.size() < 2) continue;
    axes = Reversed(axes);
    return true;
  }
  return false;
}

bool Widened(const Mesh&, Dice* dice, Sharding* sharding) {
  if (sharding->SplitAxes().empty()) return false;
  const AxisId axis = AnyOf(sharding->SplitAxes(), dice);
  for (AxisList& axes : sharding->dims) axes.Remove(axis);
  return true;
}

bool Narrowed(const Mesh& mesh, Dice* dice, Sharding* sharding) {
  const AxisSet free = mesh.AllAxes() - sharding->UsedAxes();
  if (free.empty() || sharding->dims.empty()) return false;
  sharding->dims[dice->Below(sharding->dims.size())].push_back(AnyOf(free, dice));
  return true;
}

bool SplitToSum(const Mesh&, Dice* dice, Sharding* sharding) {
  if (sharding->SplitAxes().empty()) return false;
  const AxisId axis = AnyOf(sharding->SplitAxes(), dice);
  for (AxisList& axes : sharding->dims) axes.Remove(axis);
  sharding->sum.Add(axis);
  return true;
}

// The tile that a load fills is cut otherwise than the batch.
bool LoadCutOtherwise(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> loads = InstrsWhere(
      plan, [](const Segment&, const Instr& instr) { return instr.kind == InstrKind::kLoad; });
  const InstrPlace* place = dice->Pick(&loads);
  if (place == nullptr || plan->mesh.num_axes() == 0) return false;
  std::vector<AxisList>& dims = place->out(0).sharding.dims;
  if (!dims[0].empty()) {
    std::swap(dims[0], dims[1]);
  } else {
    dims[0].push_back(AnyOf(plan->mesh.AllAxes(), dice));
  }
  *what = place->Name();
  return true;
}

}  // namespace

std::vector<MutationKind> ShardingMutations() {
  return {
      OnSlot("owed sum forgotten", DropSum),
      OnSlot("owed sum invented", AddSum),
      OnSlot("owed sum called a maximum", SumToMax),
      OnSlot("axis moved to another dim", MoveToOtherDim),
      OnSlot("stored piece called a sum", StorageToSum),
      OnSlot("storage and dim exchanged", StorageAndDimSwapped),
      OnSlot("order of axes reversed", OrderReversed),
      OnSlot("shard called whole", Widened),
      OnSlot("whole called a shard", Narrowed),
      OnSlot("shard called a sum", SplitToSum),
      {"load cut otherwise", LoadCutOtherwise},
  };
}

}  // namespace mgc
