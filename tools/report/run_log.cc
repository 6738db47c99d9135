#include "tools/report/run_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "tools/views/drawings/read_timeline.h"

namespace mgc {
namespace {

// Of a number, or of a text that stands for one that is not finite.
absl::optional<double> NumberOf(const JsonValue& value) {
  if (value.is_number()) return value.number;
  if (value.kind != JsonValue::Kind::kString) return absl::nullopt;
  if (value.text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value.text == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return absl::nullopt;
}

void AddNumbers(const JsonValue& object, const std::string& prefix, int64_t step, RunLog* log) {
  for (const JsonMember& member : object.members) {
    const std::string key = absl::StrCat(prefix, member.key);
    if (const auto number = NumberOf(member.value); number.has_value() && key != "step") {
      log->series[key].push_back({step, *number});
    } else if (member.value.kind == JsonValue::Kind::kObject) {
      AddNumbers(member.value, absl::StrCat(key, "."), step, log);
    }
  }
}

bool IsTrue(const JsonValue& object, absl::string_view key) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::kBool && value->boolean;
}

absl::Status AddLine(absl::string_view line, const std::string& place, RunLog* log) {
  MGC_ASSIGN_OR_RETURN(const JsonValue object, ParseJson(line, place));
  const JsonValue* step = object.Find("step");
  if (step == nullptr || step->kind != JsonValue::Kind::kInteger) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(place),
                     ": no object with a whole number `step`; nearest legal: a "
                     "file that mgc-run --metrics has written"));
  }
  AddNumbers(object, "", step->integer, log);
  if (object.Find("loss") != nullptr) ++log->steps;
  if (IsTrue(object, "warm_up")) log->warm_up.insert(step->integer);
  if (IsTrue(object, "left_out")) ++log->left_out;
  return absl::OkStatus();
}

bool IsUpdate(const LogBar& bar) {
  return bar.category == "action" && !bar.name.empty() && bar.name.find('U') != std::string::npos;
}

// When the last step of these rows began: behind the update before the last one.
double BeginOfLastStep(const std::vector<LogRow>& rows, bool predicted) {
  double begin = 0;
  for (const LogRow& row : rows) {
    if (row.predicted != predicted) continue;
    std::vector<double> ends;
    for (const LogBar& bar : row.bars) {
      if (IsUpdate(bar)) ends.push_back(bar.end_us);
    }
    std::sort(ends.begin(), ends.end());
    if (ends.size() > 1) begin = std::max(begin, ends[ends.size() - 2]);
  }
  return begin;
}

// Keeps what begins behind a time, from which the rest is counted.
void KeepFrom(double begin_us, LogRow* row) {
  auto& bars = row->bars;
  bars.erase(std::remove_if(bars.begin(), bars.end(),
                            [&](const LogBar& bar) { return bar.begin_us < begin_us; }),
             bars.end());
  for (LogBar& bar : bars) {
    bar.begin_us -= begin_us;
    bar.end_us -= begin_us;
  }
}

}  // namespace

const LogSeries& RunLog::Of(const std::string& key) const {
  static const LogSeries& none = *new LogSeries();
  const auto found = series.find(key);
  return found == series.end() ? none : found->second;
}

absl::StatusOr<RunLog> ParseRunLog(absl::string_view text, const std::string& file) {
  RunLog log;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line.end() == text.end()) continue;
    MGC_RETURN_IF_ERROR(AddLine(line, absl::StrCat(file, ", line ", number), &log));
  }
  if (log.steps > 0) return log;
  return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(file), ": no step of a run"));
}

double MedianOf(const LogSeries& series, const std::set<int64_t>& without) {
  std::vector<double> values;
  for (const LogPoint& point : series) {
    if (std::isfinite(point.value) && without.count(point.step) == 0) values.push_back(point.value);
  }
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

absl::StatusOr<std::vector<LogRow>> ParseTimeline(absl::string_view text, const std::string& file) {
  constexpr double kNsPerUs = 1e3;
  MGC_ASSIGN_OR_RETURN(const Timeline timeline, ReadTimeline(text, file));
  std::vector<LogRow> all;
  all.reserve(timeline.tracks.size());
  for (const TimelineTrack& track : timeline.tracks) {
    all.push_back(
        {track.process_name, track.thread_name != "communication", IsPredicted(track), {}});
  }
  for (const TimelineEvent& event : timeline.events) {
    if (event.category == "compute") continue;
    all[event.track].bars.push_back({event.name, event.category,
                                     static_cast<double>(event.begin_ns) / kNsPerUs,
                                     static_cast<double>(event.end_ns) / kNsPerUs});
  }
  for (const bool predicted : {false, true}) {
    const double begin = BeginOfLastStep(all, predicted);
    for (LogRow& row : all) {
      if (row.predicted == predicted) KeepFrom(begin, &row);
    }
  }
  return all;
}

}  // namespace mgc
