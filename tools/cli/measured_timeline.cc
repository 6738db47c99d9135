#include "tools/cli/measured_timeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
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

void AppendRank(const Plan& plan, const std::vector<TraceEvent>& records, size_t first_track,
                FlopCounter* flops, Timeline* timeline) {
  for (const TraceEvent& record : records) {
    const bool compute = record.kind == TraceKind::kAction || record.kind == TraceKind::kInstr;
    TimelineEvent event;
    event.track = first_track + (compute ? 0 : 1);
    event.name = record.name;
    event.category = CategoryOf(record.kind);
    event.begin_ns = record.begin_ns;
    event.end_ns = record.end_ns;
    event.micro_batch = record.micro_batch;
    if (record.layer < plan.model.num_layers()) event.layer = record.layer;
    event.bytes = record.bytes;
    if (record.calls != nullptr) event.flops = flops->Of(*record.calls);
    if (record.segment != nullptr) {
      event.flops =
          flops->Of(*record.segment, record.segment->instrs[static_cast<size_t>(record.instr)]);
    }
    timeline->events.push_back(std::move(event));
  }
}

// Events as lines, for another process: track, times, arguments, category, name.
std::string Packed(const Timeline& timeline) {
  std::string text;
  for (const TimelineEvent& event : timeline.events) {
    const TimelineTrack& track = timeline.tracks[event.track];
    absl::StrAppend(&text, track.process, "\t", track.thread, "\t", event.begin_ns, "\t",
                    event.end_ns, "\t", event.micro_batch, "\t", event.layer, "\t", event.bytes,
                    "\t", event.flops, "\t", event.category, "\t", event.name, "\n");
  }
  return text;
}

absl::Status Unpack(absl::string_view text, Timeline* timeline) {
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits('\t', 9));
    int64_t process = 0;
    int64_t thread = 0;
    TimelineEvent event;
    if (words.size() != 10 || !absl::SimpleAtoi(words[0], &process) ||
        !absl::SimpleAtoi(words[1], &thread) || !absl::SimpleAtoi(words[2], &event.begin_ns) ||
        !absl::SimpleAtoi(words[3], &event.end_ns) ||
        !absl::SimpleAtoi(words[4], &event.micro_batch) ||
        !absl::SimpleAtoi(words[5], &event.layer) || !absl::SimpleAtoi(words[6], &event.bytes) ||
        !absl::SimpleAtoi(words[7], &event.flops)) {
      return absl::InternalError("a process sends a timeline that nobody can read");
    }
    event.track = static_cast<size_t>(2 * (process - 1) + thread - 1);
    event.category = std::string(words[8]);
    event.name = std::string(words[9]);
    timeline->events.push_back(std::move(event));
  }
  return absl::OkStatus();
}

// Of a rank; ranks whose other coordinates are equal are one pipeline.
void AddTracks(const Mesh& mesh, int64_t rank, Timeline* timeline) {
  const AxisId axis = PipelineAxis(mesh);
  const int64_t pipeline = axis < 0 ? rank : rank - mesh.Coordinate(rank, axis) * mesh.stride(axis);
  const std::string name = NameOfRank(mesh, rank);
  timeline->tracks.push_back({rank + 1, name, 1, "compute", pipeline});
  timeline->tracks.push_back({rank + 1, name, 2, "communication", pipeline});
}

// What the ranks here have recorded, by a clock that theirs is ahead of.
Timeline Recorded(const Executor& executor, int64_t ahead_ns) {
  Timeline timeline;
  FlopCounter flops(executor.plan());
  for (int64_t rank = executor.local().begin; rank < executor.local().end; ++rank) {
    const size_t first_track = timeline.tracks.size();
    AddTracks(executor.plan().mesh, rank, &timeline);
    AppendRank(executor.plan(), executor.Trace(rank), first_track, &flops, &timeline);
  }
  for (TimelineEvent& event : timeline.events) {
    event.begin_ns -= ahead_ns;
    event.end_ns -= ahead_ns;
  }
  return timeline;
}

void CountFromTheFirst(Timeline* timeline) {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const TimelineEvent& event : timeline->events) origin = std::min(origin, event.begin_ns);
  for (TimelineEvent& event : timeline->events) {
    event.begin_ns -= origin;
    event.end_ns -= origin;
  }
}

// The timeline of all ranks, of which each process has its own.
absl::StatusOr<Timeline> OfAllProcesses(const Timeline& mine, const Mesh& mesh, Team& team) {
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, team.Gather(Packed(mine)));
  Timeline timeline;
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) AddTracks(mesh, rank, &timeline);
  for (const std::string& text : all) MGC_RETURN_IF_ERROR(Unpack(text, &timeline));
  return timeline;
}

}  // namespace

Timeline MeasuredHere(const Executor& executor) {
  Timeline timeline = Recorded(executor, 0);
  CountFromTheFirst(&timeline);
  JoinTransfers(&timeline);
  return timeline;
}

absl::StatusOr<Timeline> MeasuredTimeline(const Executor& executor, int64_t ahead_ns) {
  Timeline timeline = Recorded(executor, ahead_ns);
  if (executor.team().size() > 1) {
    MGC_ASSIGN_OR_RETURN(timeline, OfAllProcesses(timeline, executor.plan().mesh, executor.team()));
  }
  CountFromTheFirst(&timeline);
  JoinTransfers(&timeline);
  return timeline;
}

void Append(const Timeline& more, Timeline* timeline) {
  const size_t first_track = timeline->tracks.size();
  timeline->tracks.insert(timeline->tracks.end(), more.tracks.begin(), more.tracks.end());
  uint64_t flows = 0;
  for (const TimelineEvent& event : timeline->events) flows = std::max(flows, event.flow);
  for (TimelineEvent event : more.events) {
    event.track += first_track;
    if (event.flow != 0) event.flow += flows;
    timeline->events.push_back(std::move(event));
  }
}

}  // namespace mgc
