#include "tools/views/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/json_writer.h"
#include "graph/plan/plan_refs.h"
#include "tools/views/series.h"

namespace mgc {
namespace {

constexpr size_t kLongestLine = 100;  // characters

// Whether a transfer anchored at `action` cannot start before it has begun.
bool FollowsStart(const Transfer& transfer, const Action& action) {
  if (transfer.issued > 0) return true;
  return std::any_of(transfer.after.begin(), transfer.after.end(),
                     [&](const ActionRef& ref) { return SameRef(ref, action.ref); });
}

bool IsAwaited(const Transfer& transfer, const Action& action) {
  return std::any_of(action.waits.begin(), action.waits.end(),
                     [&](const TransferRef& ref) { return SameRef(ref, transfer.ref); });
}

ScheduleEntry EntryOf(const PlanClass& plan_class, const ActionRef& ref) {
  if (ref.kind == ActionKind::kUpdate) return {std::string(LetterOf(ref.kind)), -1};
  const int stage = plan_class.chunks[static_cast<size_t>(ref.chunk)].stage;
  const int64_t micro_batch = IsOfMicroBatch(ref.kind) ? ref.micro_batch : -1;
  return {absl::StrCat(stage, LetterOf(ref.kind)), micro_batch};
}

ScheduleEntry EntryOf(const PlanClass& plan_class, const TransferRef& ref) {
  const int stage = plan_class.chunks[static_cast<size_t>(ref.chunk)].stage;
  return {absl::StrCat(stage, WordOf(ref.kind)), ref.micro_batch};
}

ScheduleEntry EntryOf(const ScheduleAction& action) {
  ScheduleAction first = action;
  first.micro_batch = 0;
  std::string word = ToString(first);
  word.pop_back();  // the micro-batch
  return {std::move(word), action.micro_batch};
}

}  // namespace

std::vector<ScheduleEntry> ScheduleEntriesOf(const PlanClass& plan_class) {
  std::vector<ScheduleEntry> entries;
  const std::vector<Transfer>& transfers = plan_class.train.transfers;
  size_t next = 0;
  const auto take = [&] { entries.push_back(EntryOf(plan_class, transfers[next++].ref)); };
  for (const Action& action : plan_class.train.compute) {
    const auto anchored = [&] {
      return next < transfers.size() && SameRef(transfers[next].anchor, action.ref);
    };
    while (anchored() &&
           (IsAwaited(transfers[next], action) || !FollowsStart(transfers[next], action))) {
      take();
    }
    entries.push_back(EntryOf(plan_class, action.ref));
    while (anchored()) take();
  }
  while (next < transfers.size()) take();
  return entries;
}

std::vector<ScheduleEntry> ComputedEntriesOf(const PlanClass& plan_class) {
  std::vector<ScheduleEntry> entries;
  entries.reserve(plan_class.train.compute.size());
  for (const Action& action : plan_class.train.compute) {
    entries.push_back(EntryOf(plan_class, action.ref));
  }
  return entries;
}

ScheduleRows RowsOf(const PipelineSchedule& schedule) {
  ScheduleRows rows;
  for (const std::vector<ScheduleAction>& list : schedule.lists) {
    rows.emplace_back();
    for (const ScheduleAction& action : list) rows.back().push_back(EntryOf(action));
  }
  return rows;
}

ScheduleRows RowsOf(const Plan& plan) {
  ScheduleRows rows;
  for (const PlanClass& plan_class : plan.classes) {
    rows.push_back(ScheduleEntriesOf(plan_class));
  }
  return rows;
}

std::string ScheduleCsv(const ScheduleRows& rows) {
  std::string csv;
  for (const std::vector<ScheduleEntry>& row : rows) {
    absl::StrAppend(&csv,
                    absl::StrJoin(row, ",",
                                  [](std::string* out, const ScheduleEntry& entry) {
                                    absl::StrAppend(out, ToString(entry));
                                  }),
                    "\n");
  }
  return csv;
}

std::string FoldedSchedule(const ScheduleRows& rows) {
  std::vector<std::string> lines;
  lines.reserve(rows.size());
  for (const std::vector<ScheduleEntry>& row : rows) lines.push_back(ToString(FindLoops(row)));
  return SeriesText("pp", lines);
}

std::string ScheduleText(const ScheduleRows& rows, bool all) {
  std::string csv = ScheduleCsv(rows);
  const std::vector<absl::string_view> lines = absl::StrSplit(csv, '\n');
  const bool fits = std::all_of(lines.begin(), lines.end(),
                                [](absl::string_view line) { return line.size() <= kLongestLine; });
  return all || fits ? csv : FoldedSchedule(rows);
}

std::string ScheduleJson(const ScheduleRows& rows) {
  JsonWriter json;
  json.BeginObject().Key("ranks").BeginArray();
  for (const std::vector<ScheduleEntry>& row : rows) {
    json.NewLine().BeginArray();
    for (const ScheduleEntry& entry : row) json.String(ToString(entry));
    json.EndArray();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
