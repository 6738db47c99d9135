#include "runtime/run/finite.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "graph/types/layer_names.h"
#include "graph/types/sharding.h"
#include "graph/types/tile_runs.h"
#include "runtime/run/where.h"

namespace mgc {
namespace {

double AsDouble(float x) { return x; }
double AsDouble(double x) { return x; }
double AsDouble(Bfloat16 x) { return ToFloat(x); }
double AsDouble(Float16 x) { return ToFloat(x); }

template <typename T>
TileNumbers NumbersOf(const void* tile, int64_t elements) {
  const T* const x = static_cast<const T*>(tile);
  TileNumbers numbers;
  bool any = false;
  for (int64_t i = 0; i < elements; ++i) {
    const double value = AsDouble(x[i]);
    if (!std::isfinite(value)) {
      if (numbers.first_bad.has_value()) continue;
      numbers.first_bad = i;
      numbers.is_nan = std::isnan(value);
      continue;
    }
    numbers.least = any ? std::min(numbers.least, value) : value;
    numbers.most = any ? std::max(numbers.most, value) : value;
    any = true;
  }
  return numbers;
}

// `[3, 17]`: the place in the logical tensor of an element of a rank's tile; of padding there is
// none.
std::string PlaceOf(const Slot& slot, const Mesh& mesh, int64_t rank, int64_t element) {
  int64_t whole = -1;
  ForEachRun(slot.type, slot.sharding, mesh, rank, [&](int64_t at, int64_t begin, int64_t count) {
    if (element >= at && element < at + count) whole = begin + element - at;
  });
  if (whole < 0) return "in padding";
  std::vector<int64_t> index(slot.type.dims.size());
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = whole % slot.type.dims[d].size;
    whole /= slot.type.dims[d].size;
  }
  return absl::StrCat("at [", absl::StrJoin(index, ", "), "]");
}

// `norm.weight in [0.9, 1.1]`, or where it is bad already.
std::string InputText(const Plan& plan, const Slot& slot, int layer, int64_t rank,
                      const TileNumbers& numbers) {
  const std::string name = NameForLayer(slot.name, layer);
  if (numbers.first_bad.has_value()) {
    return absl::StrCat(name, " not finite ", PlaceOf(slot, plan.mesh, rank, *numbers.first_bad));
  }
  if (slot.type.dtype == DType::kI64) return absl::StrCat(name, " of integers");
  return absl::StrCat(name, " in [", numbers.least, ", ", numbers.most, "]");
}

}  // namespace

TileNumbers NumbersOf(DType dtype, const void* tile, int64_t elements) {
  switch (dtype) {
    case DType::kF32:
      return NumbersOf<float>(tile, elements);
    case DType::kF64:
      return NumbersOf<double>(tile, elements);
    case DType::kBF16:
      return NumbersOf<Bfloat16>(tile, elements);
    case DType::kF16:
      return NumbersOf<Float16>(tile, elements);
    case DType::kI8:
    case DType::kI64:
      break;
  }
  return {};
}

absl::Status CheckFinite(const Plan& plan, const Segment& segment, const LoadedInstr& loaded,
                         int layer, const Rank& rank, int place, Device& device) {
  const Instr& instr = *loaded.instr;
  const auto slot_of = [&segment](int number) -> const Slot& {
    return segment.slots[static_cast<size_t>(number)];
  };
  const auto address_of = [&rank](const LoadedSlot& at) {
    return rank.formals[static_cast<size_t>(at.formal)] + at.offset;
  };
  const auto numbers_of = [&](const Slot& slot, const LoadedSlot& at) {
    TileNumbers numbers;
    device.Look(ComputeQueue(place), address_of(at), at.bytes, [&](const char* tile) {
      numbers =
          NumbersOf(slot.type.dtype, tile, LocalElements(slot.type, slot.sharding, plan.mesh));
    });
    return numbers;
  };
  for (size_t i = 0; i < loaded.outputs.size(); ++i) {
    const Slot& slot = slot_of(instr.outputs[i]);
    const TileNumbers numbers = numbers_of(slot, loaded.outputs[i]);
    if (!numbers.first_bad.has_value()) continue;
    std::vector<std::string> neighbours;
    for (size_t n = 0; n < loaded.inputs.size(); ++n) {
      const Slot& input = slot_of(instr.inputs[n]);
      const LoadedSlot& from = loaded.inputs[n];
      const bool taken =
          std::any_of(loaded.outputs.begin(), loaded.outputs.end(),
                      [&](const LoadedSlot& to) { return address_of(to) == address_of(from); });
      neighbours.push_back(taken ? absl::StrCat(NameForLayer(input.name, layer), " overwritten")
                                 : InputText(plan, input, layer, rank.id, numbers_of(input, from)));
    }
    return absl::DataLossError(absl::StrCat(
        NameForLayer(slot.name, layer), " is ", numbers.is_nan ? "NaN" : "infinite", " ",
        PlaceOf(slot, plan.mesh, rank.id, *numbers.first_bad), SourceText(plan.model, instr),
        "; of its inputs ", absl::StrJoin(neighbours, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace mgc
