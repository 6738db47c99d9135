// Damage to numbers that act through a size, or that a field of residues might take for others:
// frequencies of rotations, constants wrong by powers of two, constants that are no numbers.

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

constexpr double kTurn = 0x1p61;  // 1 modulo 2^61 - 1

std::vector<InstrPlace> Rotations(Plan* plan, bool backward_only) {
  return InstrsWhere(plan, [backward_only](const Segment& segment, const Instr& instr) {
    return instr.kind == InstrKind::kCompute && instr.op->name == "rope" &&
           (!backward_only || absl::EndsWith(segment.name, ".backward"));
  });
}

// The same change of an attribute in many rotations at once, so that they agree among themselves.
MutationKind RotationsChanged(const char* name, const char* attr, bool backward_only) {
  return {name,
          [attr, backward_only](Plan* plan, Dice* dice, std::string* what) {
            const double by = 0.5 + 0.125 * static_cast<double>(dice->Below(3));
            bool any = false;
            for (const InstrPlace& place : Rotations(plan, backward_only)) {
              if (place.instr().attrs.Find(attr) == nullptr) continue;
              place.instr().attrs.Set(attr, place.instr().attrs.Real(attr) * by);
              any = true;
            }
            *what = absl::StrCat(attr, " times ", by);
            return any;
          },
          1};
}

bool RotationsStretched(Plan* plan, Dice* dice, std::string* what) {
  const double factor = 2.0 + static_cast<double>(dice->Below(7));
  bool any = false;
  for (const InstrPlace& place : Rotations(plan, false)) {
    Attrs& attrs = place.instr().attrs;
    if (attrs.Find("factor") != nullptr) continue;
    attrs.Set("factor", factor);
    attrs.Set("low", 1.0);
    attrs.Set("high", 4.0);
    attrs.Set("original", 64.0);
    any = true;
  }
  *what = absl::StrCat("by ", factor);
  return any;
}

bool StretchDropped(Plan* plan, Dice* dice, std::string* what) {
  const bool backward_only = dice->Flip();
  bool any = false;
  for (const InstrPlace& place : Rotations(plan, backward_only)) {
    Attrs& attrs = place.instr().attrs;
    if (attrs.Find("factor") == nullptr) continue;
    attrs = {{"theta", attrs.Real("theta")}, {"inverse", attrs.Int("inverse")}};
    any = true;
  }
  *what = backward_only ? "in backward" : "everywhere";
  return any;
}

bool RotationsTurnedBack(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> places = Rotations(plan, false);
  if (places.empty()) return false;
  const bool all = dice->Flip();
  if (!all) places = {*dice->Pick(&places)};
  *what = all ? "all" : places[0].Name();
  for (const InstrPlace& place : places) {
    place.instr().attrs.Set("inverse", int64_t{1} - place.instr().attrs.Int("inverse"));
  }
  return true;
}

// --- Powers of two

std::vector<InstrPlace> WithReal(Plan* plan, const std::string& attr) {
  return InstrsWhere(plan, [&attr](const Segment&, const Instr& instr) {
    const AttrValue* value = instr.attrs.Find(attr);
    return instr.kind == InstrKind::kCompute && value != nullptr &&
           std::holds_alternative<double>(*value) && std::get<double>(*value) != 0;
  });
}

MutationKind Multiplied(const char* name, const char* attr, double by, int hole) {
  return {name,
          [attr, by](Plan* plan, Dice* dice, std::string* what) {
            std::vector<InstrPlace> places = WithReal(plan, attr);
            const InstrPlace* place = dice->Pick(&places);
            if (place == nullptr) return false;
            place->instr().attrs.Set(attr, place->instr().attrs.Real(attr) * by);
            *what = absl::StrCat(place->Name(), ", ", attr);
            return true;
          },
          hole};
}

// Everywhere, so that no two uses of one constant differ.
MutationKind MultipliedEverywhere(const char* name, const char* attr, double by) {
  return {name,
          [attr, by](Plan* plan, Dice*, std::string* what) {
            const std::vector<InstrPlace> places = WithReal(plan, attr);
            for (const InstrPlace& place : places) {
              place.instr().attrs.Set(attr, place.instr().attrs.Real(attr) * by);
            }
            *what = absl::StrCat(places.size(), " of ", attr);
            return !places.empty();
          },
          2};
}

// Two constants on one path, neither of which is wrong by a turn alone.
bool TwoThatMakeATurn(Plan* plan, Dice* dice, std::string* what) {
  std::vector<InstrPlace> seeds = WithReal(plan, "value");
  std::vector<InstrPlace> scales = WithReal(plan, "scale");
  const InstrPlace* seed = dice->Pick(&seeds);
  const InstrPlace* scale = dice->Pick(&scales);
  if (seed == nullptr || scale == nullptr) return false;
  const int bits = 20 + static_cast<int>(dice->Below(20));
  seed->instr().attrs.Set("value", std::ldexp(seed->instr().attrs.Real("value"), bits));
  scale->instr().attrs.Set("scale", std::ldexp(scale->instr().attrs.Real("scale"), 61 - bits));
  *what = absl::StrCat(seed->Name(), " and ", scale->Name(), ", 2^", bits);
  return true;
}

// --- No numbers

MutationKind SetTo(const char* name, const char* attr, double value) {
  return {name,
          [attr, value](Plan* plan, Dice* dice, std::string* what) {
            std::vector<InstrPlace> places = WithReal(plan, attr);
            const InstrPlace* place = dice->Pick(&places);
            if (place == nullptr) return false;
            place->instr().attrs.Set(attr, value);
            *what = absl::StrCat(place->Name(), ", ", attr);
            return true;
          },
          4};
}

}  // namespace

std::vector<MutationKind> ConstantMutations() {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      RotationsChanged("base of all rotations changed", "theta", false),
      RotationsChanged("base of backward's rotations changed", "theta", true),
      RotationsChanged("slowing of all rotations changed", "factor", false),
      RotationsChanged("slow end of all rotations changed", "low", false),
      RotationsChanged("fast end of all rotations changed", "high", false),
      RotationsChanged("first length of all rotations changed", "original", false),
      RotationsChanged("slowing of backward's rotations changed", "factor", true),
      {"rotations stretched", RotationsStretched, 1},
      {"stretching dropped", StretchDropped, 1},
      {"rotations turned back", RotationsTurnedBack, 1},
      Multiplied("constant times 2^61", "value", kTurn, 2),
      Multiplied("constant over 2^61", "value", 1 / kTurn, 2),
      Multiplied("constant times 2^122", "value", kTurn * kTurn, 2),
      Multiplied("scale of attention times 2^61", "scale", kTurn, 2),
      Multiplied("eps times 2^61", "eps", kTurn, 2),
      MultipliedEverywhere("all scales of attention over 2^61", "scale", 1 / kTurn),
      MultipliedEverywhere("all eps times 2^122", "eps", kTurn * kTurn),
      {"two constants that make 2^61", TwoThatMakeATurn, 2},
      SetTo("constant is inf", "value", inf),
      SetTo("constant is -inf", "value", -inf),
      SetTo("constant is nan", "value", nan),
      SetTo("scale of attention is inf", "scale", inf),
      SetTo("scale of attention is -inf", "scale", -inf),
      SetTo("eps is inf", "eps", inf),
      SetTo("eps is nan", "eps", nan),
  };
}

}  // namespace mgc
