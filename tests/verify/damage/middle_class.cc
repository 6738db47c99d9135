#include "tests/verify/damage/middle_class.h"

#include "graph/plan/proto/plan_wire.h"

namespace mgc {
namespace {

constexpr size_t kMiddle = 3;

}  // namespace

MiddleClass::MiddleClass(const Plan& plan) : plan_(plan), bytes_(SerializePlan(plan)) {}

bool MiddleClass::IsAllThatDiffers(const Plan& mutant) const {
  if (mutant.classes.size() != plan_.classes.size()) return false;
  Plan mended = mutant;
  for (const size_t c : {kMiddle - 1, kMiddle + 1}) {
    mended.classes[c].train = plan_.classes[c].train;
    mended.classes[c].eval = plan_.classes[c].eval;
  }
  const bool damaged = SerializePlan(mended) != bytes_;
  mended.classes[kMiddle] = plan_.classes[kMiddle];
  return damaged && SerializePlan(mended) == bytes_;
}

}  // namespace mgc
