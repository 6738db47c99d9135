#include "tests/verify/damage/middle_chunk.h"

#include "graph/plan/proto/plan_wire.h"

namespace mgc {
namespace {

constexpr size_t kClass = 1;
constexpr size_t kMiddle = 2;

}  // namespace

MiddleChunk::MiddleChunk(const Plan& plan) : plan_(plan), bytes_(SerializePlan(plan)) {}

bool MiddleChunk::IsAllThatDiffers(const Plan& mutant) const {
  if (mutant.classes.size() != plan_.classes.size()) return false;
  const PlanClass& sound = plan_.classes[kClass];
  Plan mended = mutant;
  PlanClass& c = mended.classes[kClass];
  if (c.chunks.size() != sound.chunks.size() || c.eval_chunks.size() != sound.eval_chunks.size()) {
    return false;
  }
  c.chunks[kMiddle] = sound.chunks[kMiddle];
  c.eval_chunks[kMiddle] = sound.eval_chunks[kMiddle];
  c.blocks = sound.blocks;
  c.update = sound.update;
  c.eval_update = sound.eval_update;
  return SerializePlan(mutant) != bytes_ && SerializePlan(mended) == bytes_;
}

}  // namespace mgc
