// Timelines as mgc-run --trace and mgc-plan trace have written them.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_READ_TIMELINE_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_READ_TIMELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/views/drawings/timeline.h"

namespace mgc {

// Names, categories, times and flops of what TimelineJson has written; tracks by process and
// thread. Events of other kinds are left out. InvalidArgument, with the place, for what is no
// timeline.
absl::StatusOr<Timeline> ReadTimeline(absl::string_view text, const std::string& file);

// Whether a track shows what a plan predicts, and not what was measured.
bool IsPredicted(const TimelineTrack& track);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_READ_TIMELINE_H_
