#include "tools/views/timeline.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/json.h"

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

}  // namespace mgc
