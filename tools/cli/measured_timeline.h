// What an executor recorded, as a timeline.

#ifndef MGC_TOOLS_CLI_MEASURED_TIMELINE_H_
#define MGC_TOOLS_CLI_MEASURED_TIMELINE_H_

#include "runtime/run/executor.h"
#include "tools/views/drawings/timeline.h"

namespace mgc {

// Rank r is process r + 1, with its coordinates in the name; time counts from the first record.
Timeline MeasuredTimeline(const Executor& executor);

// Puts the tracks and events of `more` behind those of `timeline`.
void Append(const Timeline& more, Timeline* timeline);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MEASURED_TIMELINE_H_
