#include "tools/views/drawings/timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/json_writer.h"
#include "passes/plan/time/cost.h"

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

void WriteArguments(const TimelineEvent& event, JsonWriter* json) {
  if (event.micro_batch < 0 && event.layer < 0 && event.bytes < 0 && event.flops == 0) return;
  json->Key("args").BeginObject();
  if (event.micro_batch >= 0) json->Integer("micro_batch", event.micro_batch);
  if (event.layer >= 0) json->Integer("layer", event.layer);
  if (event.bytes >= 0) json->Integer("bytes", event.bytes);
  if (event.flops > 0) json->Integer("flops", event.flops);
  json->EndObject();
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
  WriteArguments(event, json);
  json->EndObject();
}

// What a send and its receive have in common: pipeline, receiving stage, `F3`.
using TransferKey = std::tuple<int64_t, int64_t, std::string>;

struct TransferEnd {
  TransferKey key;
  bool sends = false;
};

// Of `0SEND_F3` or `1RECV_F3`; none for what is no transfer.
absl::optional<TransferEnd> EndOf(const Timeline& timeline, const TimelineEvent& event) {
  const bool sends = absl::StrContains(event.name, "SEND_");
  const std::vector<std::string> parts = absl::StrSplit(event.name, sends ? "SEND_" : "RECV_");
  int64_t stage = 0;
  if (parts.size() != 2 || parts[1].empty() || !absl::SimpleAtoi(parts[0], &stage)) {
    return absl::nullopt;
  }
  if (sends) stage += parts[1][0] == 'F' ? 1 : -1;
  return TransferEnd{{timeline.tracks[event.track].pipeline, stage, parts[1]}, sends};
}

const char* CategoryOf(const SimulatedSpan& span) {
  if (!span.communication) return "action";
  const bool transfer =
      absl::StrContains(span.name, "SEND_") || absl::StrContains(span.name, "RECV_");
  return transfer ? "transfer" : "collective";
}

}  // namespace

std::string TimelineJson(const Timeline& timeline) {
  JsonWriter json;
  json.BeginObject().String("displayTimeUnit", "ms").Key("traceEvents").BeginArray();
  for (const TimelineTrack& track : timeline.tracks) WriteMetadata(track, &json);
  for (const TimelineEvent& event : timeline.events) WriteEvent(timeline, event, &json);
  return std::move(json.NewLine().EndArray().EndObject()).Finish();
}

void JoinTransfers(Timeline* timeline) {
  std::map<TransferKey, std::array<std::vector<size_t>, 2>> ends;  // receives, sends
  for (size_t i = 0; i < timeline->events.size(); ++i) {
    if (const auto end = EndOf(*timeline, timeline->events[i])) {
      ends[end->key][end->sends ? 1 : 0].push_back(i);
    }
  }
  uint64_t flow = 0;
  for (const auto& [key, sides] : ends) {
    const auto& [receives, sends] = sides;
    for (size_t i = 0; i < std::min(receives.size(), sends.size()); ++i) {
      timeline->events[receives[i]].flow = timeline->events[sends[i]].flow = ++flow;
      timeline->events[sends[i]].flow_begins = true;
    }
  }
}

int64_t FlopCounter::Of(const Segment& segment, const Instr& instr) const {
  if (instr.kind != InstrKind::kCompute) return 0;
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::min(FlopsOf(plan_.mesh, segment, instr), kMost));
}

int64_t FlopCounter::Of(const std::vector<Call>& calls) {
  const auto [counted, fresh] = counted_.try_emplace(&calls, 0);
  if (fresh) {
    for (const Call& call : calls) {
      const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) counted->second += Of(segment, instr);
    }
  }
  return counted->second;
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
  FlopCounter flops(plan);
  timeline.events.reserve(step.spans.size());
  for (const SimulatedSpan& span : step.spans) {
    TimelineEvent event;
    event.track = 2 * static_cast<size_t>(span.coordinate) + (span.communication ? 1 : 0);
    event.name = span.name;
    event.category = CategoryOf(span);
    event.begin_ns = span.begin_ns;
    event.end_ns = span.end_ns;
    event.micro_batch = span.micro_batch;
    if (span.layer < plan.model.num_layers()) event.layer = span.layer;
    event.bytes = span.bytes;
    if (span.calls != nullptr) event.flops = flops.Of(*span.calls);
    timeline.events.push_back(std::move(event));
  }
  JoinTransfers(&timeline);
  return timeline;
}

}  // namespace mgc
