#include "tools/cli/measured_timeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/run/where.h"

namespace mgc {
namespace {

const char* CategoryOf(TraceKind kind) {
  switch (kind) {
    case TraceKind::kAction:
      return "action";
    case TraceKind::kInstr:
      return "compute";
    case TraceKind::kCollective:
      return "collective";
    case TraceKind::kTransfer:
      return "transfer";
  }
  return "?";
}

void AppendRank(const std::vector<TraceEvent>& records, size_t first_track, Timeline* timeline) {
  for (const TraceEvent& record : records) {
    const bool compute = record.kind == TraceKind::kAction || record.kind == TraceKind::kInstr;
    TimelineEvent event;
    event.track = first_track + (compute ? 0 : 1);
    event.name = record.name;
    event.category = CategoryOf(record.kind);
    event.begin_ns = record.begin_ns;
    event.end_ns = record.end_ns;
    timeline->events.push_back(std::move(event));
  }
}

}  // namespace

Timeline MeasuredTimeline(const Executor& executor) {
  const Mesh& mesh = executor.plan().mesh;
  Timeline timeline;
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const std::string name = NameOfRank(mesh, rank);
    const size_t first_track = timeline.tracks.size();
    timeline.tracks.push_back({rank + 1, name, 1, "compute"});
    timeline.tracks.push_back({rank + 1, name, 2, "communication"});
    AppendRank(executor.Trace(rank), first_track, &timeline);
  }
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const TimelineEvent& event : timeline.events) origin = std::min(origin, event.begin_ns);
  for (TimelineEvent& event : timeline.events) {
    event.begin_ns -= origin;
    event.end_ns -= origin;
  }
  return timeline;
}

void Append(const Timeline& more, Timeline* timeline) {
  const size_t first_track = timeline->tracks.size();
  timeline->tracks.insert(timeline->tracks.end(), more.tracks.begin(), more.tracks.end());
  for (TimelineEvent event : more.events) {
    event.track += first_track;
    timeline->events.push_back(std::move(event));
  }
}

}  // namespace mgc
