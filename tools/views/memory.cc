#include "tools/views/memory.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/format.h"
#include "tools/views/peak.h"

namespace mgc {
namespace {

int64_t RanksInClass(const Plan& plan) {
  const int64_t classes = std::max<int64_t>(static_cast<int64_t>(plan.classes.size()), 1);
  return plan.mesh.world_size() / classes;
}

constexpr size_t kShownBuffers = 10;

std::string Percent(int64_t part, int64_t whole) {
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) /
                                        static_cast<double>(std::max<int64_t>(whole, 1)));
}

const PlanClass* Fullest(const Plan& plan) {
  const auto fullest = std::max_element(
      plan.classes.begin(), plan.classes.end(),
      [](const PlanClass& a, const PlanClass& b) { return a.memory.peak < b.memory.peak; });
  return fullest == plan.classes.end() ? nullptr : &*fullest;
}

std::string WhereText(const PeakMoment& moment) {
  std::string text = absl::StrCat(moment.action, ", ", moment.segment);
  if (moment.layer >= 0) absl::StrAppend(&text, " of layer ", moment.layer);
  absl::StrAppend(&text, ", instruction ", moment.instr, ", ", moment.op);
  return moment.source.empty() ? text : absl::StrCat(text, " (", moment.source, ")");
}

std::string BuffersText(const PeakMoment& moment) {
  std::vector<std::vector<std::string>> rows = {{"bytes", "each", "number", "largest then"}};
  for (const LiveBuffer& buffer : moment.buffers) {
    if (rows.size() > kShownBuffers) break;
    rows.push_back({BytesText(buffer.count * buffer.bytes), BytesText(buffer.bytes),
                    absl::StrCat(buffer.count), buffer.what});
  }
  return TableText(rows, {true, true, true, false});
}

std::string AdviceText(const Plan& plan, const MemoryAdvice& advice) {
  if (advice.options.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"lower with", "peak", "of today's", "step", "of today's"}};
  for (const MemoryOption& option : advice.options) {
    rows.push_back({option.flags, BytesText(option.peak), Percent(option.peak, HighestPeak(plan)),
                    DurationText(option.step_ns), Percent(option.step_ns, plan.predicted_step_ns)});
  }
  return TableText(rows, {false, true, true, true, true});
}

// What a purpose takes in a class.
int64_t BytesFor(const Plan& plan, size_t c, const MemoryPurpose& purpose) {
  return plan.classes[c].memory.*purpose.bytes;
}

// Behind the last of the classes from `first` whose bytes, as they are printed, lie evenly between
// those of the first and the last of them, for each purpose.
size_t EndOfRun(const Plan& plan, size_t first) {
  const auto evenly = [&](size_t last) {
    for (const MemoryPurpose& purpose : kMemoryPurposes) {
      const auto begin = static_cast<double>(BytesFor(plan, first, purpose));
      const auto all = static_cast<double>(BytesFor(plan, last, purpose)) - begin;
      for (size_t c = first + 1; c < last; ++c) {
        const double part = static_cast<double>(c - first) / static_cast<double>(last - first);
        const auto bytes = static_cast<int64_t>(std::llround(begin + part * all));
        if (BytesText(bytes) != BytesText(BytesFor(plan, c, purpose))) return false;
      }
    }
    return true;
  };
  size_t end = first + 1;
  while (end < plan.classes.size() && evenly(end)) ++end;
  return end > first + 2 ? end : first + 1;
}

std::vector<std::string> RowOf(const Plan& plan, size_t first, size_t end) {
  const int64_t last = plan.classes[end - 1].coordinate;
  const bool several = end > first + 1;
  std::vector<std::string> row = {
      absl::StrCat(plan.classes[first].coordinate, several ? absl::StrCat("-", last) : ""),
      absl::StrCat(several ? absl::StrCat(end - first, " x ") : "", RanksInClass(plan))};
  for (const MemoryPurpose& purpose : kMemoryPurposes) {
    const std::string begin = BytesText(BytesFor(plan, first, purpose));
    const std::string final = BytesText(BytesFor(plan, end - 1, purpose));
    row.push_back(begin == final ? begin : absl::StrCat(begin, " to ", final));
  }
  return row;
}

std::string ClassesText(const Plan& plan, bool all) {
  std::vector<std::vector<std::string>> rows = {{"pp", "ranks"}};
  std::vector<bool> right = {true, true};
  for (const MemoryPurpose& purpose : kMemoryPurposes) {
    rows[0].push_back(purpose.name);
    right.push_back(true);
  }
  for (size_t first = 0; first < plan.classes.size();) {
    const size_t end = all ? first + 1 : EndOfRun(plan, first);
    rows.push_back(RowOf(plan, first, end));
    first = end;
  }
  return TableText(rows, right);
}

void AddMoment(const PeakMoment& moment, JsonWriter* json) {
  json->Key("alive").BeginObject().Integer("bytes", moment.bytes);
  json->String("action", moment.action).String("segment", moment.segment);
  json->Integer("layer", moment.layer).Integer("instruction", moment.instr);
  json->String("op", moment.op).String("source", moment.source);
  json->Key("buffers").BeginArray();
  for (const LiveBuffer& buffer : moment.buffers) {
    json->BeginObject().String("what", buffer.what).Integer("count", buffer.count);
    json->Integer("bytes", buffer.bytes).EndObject();
  }
  json->EndArray().EndObject();
}

}  // namespace

int64_t HighestPeak(const Plan& plan) {
  const PlanClass* fullest = Fullest(plan);
  return fullest == nullptr ? 0 : fullest->memory.peak;
}

std::string MemoryTable(const Plan& plan, bool all) {
  std::string text = ClassesText(plan, all);
  const PlanClass* fullest = Fullest(plan);
  if (fullest == nullptr) return text;
  absl::StrAppend(&text, "highest peak: ", BytesText(fullest->memory.peak), " on pp ",
                  fullest->coordinate);
  if (plan.machine.memory > 0) {
    absl::StrAppend(&text, ", of ", BytesText(plan.machine.memory), " on ", plan.machine.name);
  }
  return absl::StrCat(text, "; beside it every thread of a running kernel has a workspace\n");
}

std::string MemoryText(const Plan& plan, const MemoryAdvice& advice, bool all) {
  std::string text = MemoryTable(plan, all);
  const PlanClass* fullest = Fullest(plan);
  if (fullest == nullptr) return text;
  const PeakMoment moment = FindPeak(plan, *fullest);
  absl::StrAppend(&text, "lower bound by liveness: ", BytesText(moment.bytes), ", ",
                  Percent(moment.bytes, fullest->memory.peak), " of it, alive in ",
                  WhereText(moment), "\n", BuffersText(moment));
  return absl::StrCat(text, AdviceText(plan, advice));
}

std::string MemoryJson(const Plan& plan, const MemoryAdvice& advice) {
  JsonWriter json;
  json.BeginObject().Integer("device_bytes", plan.machine.memory);
  json.Integer("predicted_step_ns", plan.predicted_step_ns).Key("classes").BeginArray();
  for (const PlanClass& plan_class : plan.classes) {
    json.NewLine().BeginObject().Integer("pp", plan_class.coordinate);
    json.Integer("ranks", RanksInClass(plan));
    for (const MemoryPurpose& purpose : kMemoryPurposes) {
      json.Integer(purpose.name, plan_class.memory.*purpose.bytes);
    }
    AddMoment(FindPeak(plan, plan_class), &json);
    json.EndObject();
  }
  json.NewLine().EndArray().Key("lower").BeginArray();
  for (const MemoryOption& option : advice.options) {
    json.NewLine().BeginObject().String("flags", option.flags).Integer("peak", option.peak);
    json.Integer("step_ns", option.step_ns).EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
