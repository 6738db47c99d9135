// Steps of many micro-batches without simulating all of them: in the middle of a 1F1B schedule each
// round does what the one before has done, as long after it.
//
//   rounds begin at  0  9  19  29  39  50, 10 more are left out   ->   the step takes 10 x 10
//   longer

#ifndef MGC_PASSES_PLAN_TIME_STEADY_ROUNDS_H_
#define MGC_PASSES_PLAN_TIME_STEADY_ROUNDS_H_

#include <cstdint>

#include "passes/plan/time/simulated_step.h"

namespace mgc {

// Adds `rounds` more to a simulated step whose rounds are marked: to its length and to what each
// class did. False, and nothing is added, unless the last round that begins took all classes
// equally long, and one of them, which then holds up the others, as long as the round before; nor
// for a step of centuries.
bool AddSteadyRounds(int64_t rounds, SimulatedStep* step);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TIME_STEADY_ROUNDS_H_
