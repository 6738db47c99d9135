#include "tools/views/timeline.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "passes/schedule.h"
#include "passes/simulate_schedule.h"

namespace mgc {
namespace {

// Microseconds with the nanoseconds as decimals.
std::string Microseconds(int64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }

void AppendMetadata(const TimelineTrack& track, std::string* text) {
  const std::string place =
      absl::StrCat("\"ph\": \"M\", \"pid\": ", track.process, ", \"tid\": ", track.thread);
  absl::StrAppend(text, "{\"name\": \"process_name\", ", place,
                  ", \"args\": {\"name\": ", JsonQuote(track.process_name), "}},\n");
  absl::StrAppend(text, "{\"name\": \"process_sort_index\", ", place,
                  ", \"args\": {\"sort_index\": ", track.process, "}},\n");
  absl::StrAppend(text, "{\"name\": \"thread_name\", ", place,
                  ", \"args\": {\"name\": ", JsonQuote(track.thread_name), "}},\n");
  absl::StrAppend(text, "{\"name\": \"thread_sort_index\", ", place,
                  ", \"args\": {\"sort_index\": ", track.thread, "}},\n");
}

void AppendEvent(const Timeline& timeline, const TimelineEvent& event, std::string* text) {
  const TimelineTrack& track = timeline.tracks[event.track];
  absl::StrAppend(text, "{\"name\": ", JsonQuote(event.name),
                  ", \"cat\": ", JsonQuote(event.category),
                  ", \"ph\": \"X\", \"pid\": ", track.process, ", \"tid\": ", track.thread,
                  ", \"ts\": ", Microseconds(event.begin_ns),
                  ", \"dur\": ", Microseconds(event.end_ns - event.begin_ns));
  if (event.flow != 0) {
    absl::StrAppend(text, ", \"bind_id\": \"0x", absl::Hex(event.flow), "\", \"flow_",
                    event.flow_begins ? "out" : "in", "\": true");
  }
  absl::StrAppend(text, "},\n");
}

// Gives a send and its receive the same number, by their names `0SEND_F3` and `1RECV_F3`.
class Flows {
 public:
  // 0 for what is no transfer.
  uint64_t Of(const std::string& name, bool* begins) {
    *begins = absl::StrContains(name, "SEND_");
    const std::vector<std::string> parts = absl::StrSplit(name, *begins ? "SEND_" : "RECV_");
    int64_t stage = 0;
    if (parts.size() != 2 || parts[1].empty() || !absl::SimpleAtoi(parts[0], &stage)) return 0;
    if (*begins) stage += parts[1][0] == 'F' ? 1 : -1;
    const auto [found, fresh] = numbers_.insert({{stage, parts[1]}, numbers_.size() + 1});
    (void)fresh;
    return found->second;
  }

 private:
  std::map<std::pair<int64_t, std::string>, uint64_t> numbers_;  // by receiving stage and rest
};

// The order of a plan's actions. InvalidArgument when its chunks do not lie on the ranks as a
// schedule's stages do.
absl::StatusOr<PipelineSchedule> ScheduleOf(const Plan& plan) {
  PipelineSchedule schedule;
  schedule.pp = static_cast<int64_t>(plan.classes.size());
  schedule.vp = plan.classes.empty() ? 1 : static_cast<int64_t>(plan.classes[0].chunks.size());
  schedule.micro_batches = plan.num_micro_batches;
  for (const PlanClass& plan_class : plan.classes) {
    for (int64_t i = 0; i < static_cast<int64_t>(plan_class.chunks.size()); ++i) {
      const int64_t stage = i * schedule.pp + plan_class.coordinate;
      if (plan_class.chunks[static_cast<size_t>(i)].stage == stage) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("chunk ", i, " of pp ", plan_class.coordinate, " is not stage ", stage));
    }
    schedule.ranks.emplace_back();
    for (const Action& action : plan_class.train.compute) {
      const bool forward = action.ref.kind == ActionKind::kForward;
      if (!forward && action.ref.kind != ActionKind::kBackward) continue;
      const Chunk& chunk = plan_class.chunks[static_cast<size_t>(action.ref.chunk)];
      schedule.ranks.back().push_back(
          {chunk.stage, forward ? ScheduleActionKind::kForward : ScheduleActionKind::kBackward,
           static_cast<int32_t>(action.ref.micro_batch)});
    }
  }
  return schedule;
}

std::vector<StagedCall> CallsOf(const std::vector<Call>& calls) {
  std::vector<StagedCall> staged;
  for (const Call& call : calls) staged.push_back({call.segment, call.layer, {}});
  return staged;
}

std::vector<StagedChunk> ChunksOf(const std::vector<Chunk>& chunks) {
  std::vector<StagedChunk> staged;
  for (const Chunk& chunk : chunks) {
    staged.emplace_back();
    staged.back().stage = chunk.stage;
    staged.back().forward = CallsOf(chunk.forward);
    staged.back().backward = CallsOf(chunk.backward);
    staged.back().reduce = CallsOf(chunk.reduce);
  }
  return staged;
}

// What order reads of a plan: who calls which segment.
StagedPlan StagedAgain(const Plan& plan) {
  StagedPlan staged;
  staged.mesh = plan.mesh;
  staged.segments = plan.segments;
  for (const PlanClass& c : plan.classes) {
    staged.classes.emplace_back();
    staged.classes.back().train.chunks = ChunksOf(c.chunks);
    staged.classes.back().train.update = CallsOf(c.update);
    staged.classes.back().eval.chunks = ChunksOf(c.eval_chunks);
    staged.classes.back().eval.update = CallsOf(c.eval_update);
  }
  return staged;
}

}  // namespace

std::string TimelineJson(const Timeline& timeline) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const TimelineTrack& track : timeline.tracks) AppendMetadata(track, &text);
  for (const TimelineEvent& event : timeline.events) AppendEvent(timeline, event, &text);
  if (absl::EndsWith(text, ",\n")) text.erase(text.size() - 2, 1);
  return text + "]}\n";
}

Timeline PredictedTimeline(const Plan& plan, const SimulatedStep& step, int64_t first_process) {
  Timeline timeline;
  for (const PlanClass& plan_class : plan.classes) {
    const std::string name =
        absl::StrCat("predicted: pp ", plan_class.coordinate, " (",
                     RanksOfClass(plan, plan_class.coordinate).size(), " ranks alike)");
    const int64_t process = first_process + plan_class.coordinate;
    timeline.tracks.push_back({process, name, 1, "compute"});
    timeline.tracks.push_back({process, name, 2, "communication"});
  }
  Flows flows;
  for (const SimulatedSpan& span : step.spans) {
    TimelineEvent event;
    event.track = 2 * static_cast<size_t>(span.coordinate) + (span.communication ? 1 : 0);
    event.name = span.name;
    event.category = span.communication ? "communication" : "compute";
    event.begin_ns = span.begin_ns;
    event.end_ns = span.end_ns;
    event.flow = span.communication ? flows.Of(span.name, &event.flow_begins) : 0;
    timeline.events.push_back(std::move(event));
  }
  return timeline;
}

absl::StatusOr<SimulatedStep> SimulateAgain(const Plan& plan) {
  MGC_ASSIGN_OR_RETURN(PipelineSchedule schedule, ScheduleOf(plan));
  // A plan edited by hand need not hold a schedule.
  const size_t stages = static_cast<size_t>(schedule.pp * schedule.vp);
  MGC_RETURN_IF_ERROR(
      SimulateSchedule(schedule, {std::vector<StageCost>(stages, {1, 1, 1}), 1}).status());
  SimulatedStep step;
  MGC_RETURN_IF_ERROR(
      Order({StagedAgain(plan), std::move(schedule)}, plan.machine, &step).status());
  return step;
}

}  // namespace mgc
