#include "tools/views/drawings/timeline.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/json_writer.h"

namespace mgc {
namespace {

void WritePlace(const TimelineTrack& track, JsonWriter* json) {
  json->Integer("pid", track.process).Integer("tid", track.thread);
}

// An event that gives `track` a property, whose value is still to be written.
JsonWriter& BeginMetadata(const TimelineTrack& track, absl::string_view name,
                          absl::string_view argument, JsonWriter* json) {
  json->NewLine().BeginObject().String("name", name).String("ph", "M");
  WritePlace(track, json);
  return json->Key("args").BeginObject().Key(argument);
}

void WriteMetadata(const TimelineTrack& track, JsonWriter* json) {
  const auto text = [&](absl::string_view name, absl::string_view value) {
    BeginMetadata(track, name, "name", json).String(value).EndObject().EndObject();
  };
  const auto index = [&](absl::string_view name, int64_t value) {
    BeginMetadata(track, name, "sort_index", json).Integer(value).EndObject().EndObject();
  };
  text("process_name", track.process_name);
  index("process_sort_index", track.process);
  text("thread_name", track.thread_name);
  index("thread_sort_index", track.thread);
}

// Nanoseconds become microseconds.
void WriteEvent(const Timeline& timeline, const TimelineEvent& event, JsonWriter* json) {
  json->NewLine().BeginObject().String("name", event.name).String("cat", event.category);
  json->String("ph", "X");
  WritePlace(timeline.tracks[event.track], json);
  json->Key("ts").Thousandths(event.begin_ns);
  json->Key("dur").Thousandths(event.end_ns - event.begin_ns);
  if (event.flow != 0) {
    json->String("bind_id", absl::StrCat("0x", absl::Hex(event.flow)));
    json->Bool(event.flow_begins ? "flow_out" : "flow_in", true);
  }
  json->EndObject();
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
  JsonWriter json;
  json.BeginObject().String("displayTimeUnit", "ms").Key("traceEvents").BeginArray();
  for (const TimelineTrack& track : timeline.tracks) WriteMetadata(track, &json);
  for (const TimelineEvent& event : timeline.events) WriteEvent(timeline, event, &json);
  return std::move(json.NewLine().EndArray().EndObject()).Finish();
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
