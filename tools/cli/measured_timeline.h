// What an executor recorded, as a timeline.

#ifndef MGC_TOOLS_CLI_MEASURED_TIMELINE_H_
#define MGC_TOOLS_CLI_MEASURED_TIMELINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/run/executor.h"
#include "tools/views/drawings/timeline.h"

namespace mgc {

// Of the ranks here. Rank r is process r + 1, with its coordinates in the name; time counts from
// the first record.
Timeline MeasuredHere(const Executor& executor);
// Of all ranks. Of a run in several processes all call it, and wait for each other; the first one
// gets the timeline, by its own clock: this process's is `ahead_ns` ahead of that
// (Team::ClockAhead).
absl::StatusOr<Timeline> MeasuredTimeline(const Executor& executor, int64_t ahead_ns);

// Puts the tracks and events of `more` behind those of `timeline`.
void Append(const Timeline& more, Timeline* timeline);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MEASURED_TIMELINE_H_
