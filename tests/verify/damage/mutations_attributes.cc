#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

// Instructions that have an attribute of that name.
bool PickWith(Plan* plan, Dice* dice, const std::string& attr, InstrPlace* place,
              std::string* what) {
  std::vector<InstrPlace> places = InstrsWhere(plan, [&](const Segment&, const Instr& instr) {
    return instr.kind != InstrKind::kStart && instr.attrs.Find(attr) != nullptr;
  });
  if (places.empty()) return false;
  *place = *dice->Pick(&places);
  *what = absl::StrCat(place->Name(), ", ", attr);
  return true;
}

MutationKind RealChanged(const char* name, const char* attr) {
  return {name, [attr](Plan* plan, Dice* dice, std::string* what) {
            InstrPlace place;
            if (!PickWith(plan, dice, attr, &place, what)) return false;
            const AttrValue* value = place.instr().attrs.Find(attr);
            if (!std::holds_alternative<double>(*value)) return false;
            const double old = std::get<double>(*value);
            const double changed = dice->Flip() ? old * 2 : old + 0.125;
            place.instr().attrs.Set(attr, changed == old ? old + 0.25 : changed);
            return true;
          }};
}

// Another constant, or the other sign.
bool ConstantChanged(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickWith(plan, dice, "value", &place, what)) return false;
  const double old = place.instr().attrs.Real("value");
  place.instr().attrs.Set("value", dice->Flip() ? -old : old * 2);
  return true;
}

// Another stream of random numbers: another layer's, or one for all layers.
bool KeyChanged(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickWith(plan, dice, "key", &place, what)) return false;
  std::string key = place.instr().attrs.Text("key");
  const size_t star = key.find('*');
  if (star != std::string::npos && dice->Flip()) {
    key[star] = '0';
  } else {
    key += ".x";
  }
  place.instr().attrs.Set("key", key);
  return true;
}

bool DecayFlipped(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickWith(plan, dice, "decay", &place, what)) return false;
  place.instr().attrs.Set("decay", 1 - place.instr().attrs.Int("decay"));
  return true;
}

bool RangeChanged(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickWith(plan, dice, "begin", &place, what)) return false;
  Attrs& attrs = place.instr().attrs;
  const int64_t by = attrs.Int("begin") > 0 ? -1 : 1;
  attrs.Set("begin", attrs.Int("begin") + by);
  attrs.Set("end", attrs.Int("end") + by);
  return true;
}

bool DataExchanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> loads = InstrsWhere(
      plan, [](const Segment&, const Instr& instr) { return instr.kind == InstrKind::kLoad; });
  const InstrPlace* place = dice->Pick(&loads);
  if (place == nullptr) return false;
  *what = place->Name();
  const std::string name = place->instr().attrs.Text("name");
  place->instr().attrs.Set("name", std::string(name == "tokens" ? "targets" : "tokens"));
  return true;
}

// Another product of the same operands.
bool SpecChanged(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  if (!PickWith(plan, dice, "spec", &place, what)) return false;
  std::string spec = place.instr().attrs.Text("spec");
  std::vector<size_t> letters;
  for (size_t i = 0; i < spec.size(); ++i) {
    if (spec[i] >= 'a' && spec[i] <= 'z') letters.push_back(i);
  }
  const size_t a = *dice->Pick(&letters);
  const size_t b = *dice->Pick(&letters);
  if (spec[a] == spec[b]) return false;
  std::swap(spec[a], spec[b]);
  absl::StrAppend(what, " ", spec);
  place.instr().attrs.Set("spec", spec);
  return true;
}

bool IntChanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<InstrPlace, std::string>> places;
  for (const InstrPlace& place : InstrsWhere(plan, IsCompute())) {
    for (const Attrs::Entry& entry : place.instr().attrs) {
      if (std::holds_alternative<int64_t>(entry.second)) places.emplace_back(place, entry.first);
    }
  }
  const auto* picked = dice->Pick(&places);
  if (picked == nullptr) return false;
  Attrs& attrs = picked->first.instr().attrs;
  attrs.Set(picked->second, attrs.Int(picked->second) + (dice->Flip() ? 1 : -1));
  *what = absl::StrCat(picked->first.Name(), ", ", picked->second);
  return true;
}

// Positions that a mask compares, or a rotation turns by, come from another index.
bool PositionsChanged(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> iotas = InstrsWhere(plan, IsComputeOf("iota"));
  const InstrPlace* place = dice->Pick(&iotas);
  if (place == nullptr) return false;
  *what = place->Name();
  Instr& instr = place->instr();
  instr.kind = InstrKind::kLoad;
  instr.op = nullptr;
  instr.attrs = {{"name", "tokens"}};
  return true;
}

}  // namespace

std::vector<MutationKind> AttributeMutations() {
  return {
      RealChanged("eps changed", "eps"),
      RealChanged("dropout's p changed", "p"),
      RealChanged("scale of attention changed", "scale"),
      RealChanged("base of rotations changed", "theta"),
      {"constant changed", ConstantChanged},
      {"dropout's key changed", KeyChanged},
      {"decay flipped", DecayFlipped},
      {"slice's range changed", RangeChanged},
      {"data inputs exchanged", DataExchanged},
      {"letters of a product exchanged", SpecChanged},
      {"integer attribute off by one", IntChanged},
      {"positions taken from the data", PositionsChanged},
  };
}

}  // namespace mgc
