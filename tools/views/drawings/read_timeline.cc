#include "tools/views/drawings/read_timeline.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr double kMostMicroseconds = 1e15;  // 31 years

const std::string& TextOf(const JsonValue& event, absl::string_view key) {
  static const std::string& none = *new std::string();
  const JsonValue* value = event.Find(key);
  return value == nullptr || value->kind != JsonValue::Kind::kString ? none : value->text;
}

// Rounded to nanoseconds; 0 for what is no time.
int64_t NsAt(const JsonValue& event, absl::string_view key) {
  const JsonValue* value = event.Find(key);
  if (value == nullptr || !value->is_number()) return 0;
  return std::abs(value->number) < kMostMicroseconds ? std::llround(value->number * 1000) : 0;
}

int64_t IntegerAt(const JsonValue& event, absl::string_view key) {
  const JsonValue* value = event.Find(key);
  return value == nullptr || value->kind != JsonValue::Kind::kInteger ? 0 : value->integer;
}

using Place = std::pair<int64_t, int64_t>;  // process, thread
Place PlaceOf(const JsonValue& event) { return {IntegerAt(event, "pid"), IntegerAt(event, "tid")}; }

void ReadTrack(const JsonValue& event, TimelineTrack* track) {
  const JsonValue* arguments = event.Find("args");
  if (arguments == nullptr) return;
  const std::string& name = TextOf(event, "name");
  if (name == "process_name") track->process_name = TextOf(*arguments, "name");
  if (name == "thread_name") track->thread_name = TextOf(*arguments, "name");
}

TimelineEvent ReadEvent(const JsonValue& event, size_t track) {
  TimelineEvent read;
  read.track = track;
  read.name = TextOf(event, "name");
  read.category = TextOf(event, "cat");
  read.begin_ns = NsAt(event, "ts");
  read.end_ns = read.begin_ns + NsAt(event, "dur");
  const JsonValue* arguments = event.Find("args");
  if (arguments != nullptr) read.flops = IntegerAt(*arguments, "flops");
  return read;
}

}  // namespace

absl::StatusOr<Timeline> ReadTimeline(absl::string_view text, const std::string& file) {
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, file));
  const JsonValue* events = root.Find("traceEvents");
  if (events == nullptr || events->kind != JsonValue::Kind::kArray) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(file), ": no timeline, which has `traceEvents`"));
  }
  std::map<Place, TimelineTrack> places;
  for (const JsonValue& event : events->items) {
    const Place place = PlaceOf(event);
    TimelineTrack& track = places[place];
    std::tie(track.process, track.thread) = place;
    if (TextOf(event, "ph") == "M") ReadTrack(event, &track);
  }
  Timeline timeline;
  std::map<Place, size_t> tracks;
  for (auto& [place, track] : places) {
    tracks[place] = timeline.tracks.size();
    timeline.tracks.push_back(std::move(track));
  }
  for (const JsonValue& event : events->items) {
    if (TextOf(event, "ph") != "X") continue;
    timeline.events.push_back(ReadEvent(event, tracks[PlaceOf(event)]));
  }
  return timeline;
}

bool IsPredicted(const TimelineTrack& track) {
  return absl::StartsWith(track.process_name, "predicted");
}

}  // namespace mgc
