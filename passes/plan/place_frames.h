// Where frames lie: what forward keeps for backward, of one micro-batch of one chunk.
//
// First-fit along the compute list: taken by a forward, given back by its backward.

#ifndef MGC_PASSES_PLAN_PLACE_FRAMES_H_
#define MGC_PASSES_PLAN_PLACE_FRAMES_H_

#include <cstdint>
#include <vector>

#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// Frames of a program's actions, by action: relative to the frames' region, -1 where there is none.
struct Frames {
  std::vector<int64_t> at;
  int64_t bytes = 0;  // size of the region; more than kMaxPlanBytes where they do not fit in that
};

// Without `backward` a frame is given back by its forward. Every backward has its forward before it
// in the list.
Frames PlaceFrames(const std::vector<StagedChunk>& chunks, bool backward,
                   const OrderedProgram& program);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_PLACE_FRAMES_H_
