// Why no rank can go on.

#ifndef MGC_RUNTIME_RUN_DEADLOCK_H_
#define MGC_RUNTIME_RUN_DEADLOCK_H_

#include <string>
#include <vector>

#include "runtime/load/load_plan.h"
#include "runtime/run/rank.h"

namespace mgc {

// Every rank's state (action, instruction, what it waits for) and the cycle of waits, as lines.
// Called when nothing runs and nothing is in flight.
std::string DescribeDeadlock(const LoadedPlan& plan, const std::vector<Rank>& ranks, bool eval);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_DEADLOCK_H_
