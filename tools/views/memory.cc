#include "tools/views/memory.h"

#include <algorithm>
#include <array>
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

struct Purpose {
  const char* name;  // of the column and of the key
  int64_t MemoryUse::*bytes;
};

constexpr std::array<Purpose, 9> kPurposes = {{
    {"params", &MemoryUse::params},
    {"grads", &MemoryUse::grads},
    {"optimizer", &MemoryUse::states},
    {"copies", &MemoryUse::copies},
    {"activations", &MemoryUse::frames},
    {"boundaries", &MemoryUse::boundaries},
    {"transient", &MemoryUse::transient},
    {"peak", &MemoryUse::peak},
    {"workspace", &MemoryUse::workspace},
}};

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

std::string ClassesText(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {{"pp", "ranks"}};
  std::vector<bool> right = {true, true};
  for (const Purpose& purpose : kPurposes) {
    rows[0].push_back(purpose.name);
    right.push_back(true);
  }
  for (const PlanClass& plan_class : plan.classes) {
    rows.push_back({absl::StrCat(plan_class.coordinate), absl::StrCat(RanksInClass(plan))});
    for (const Purpose& purpose : kPurposes) {
      rows.back().push_back(BytesText(plan_class.memory.*purpose.bytes));
    }
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

std::string MemoryTable(const Plan& plan) {
  std::string text = ClassesText(plan);
  const PlanClass* fullest = Fullest(plan);
  if (fullest == nullptr) return text;
  absl::StrAppend(&text, "highest peak: ", BytesText(fullest->memory.peak), " on pp ",
                  fullest->coordinate);
  if (plan.machine.memory > 0) {
    absl::StrAppend(&text, ", of ", BytesText(plan.machine.memory), " on ", plan.machine.name);
  }
  return absl::StrCat(text, "; beside it every thread of a running kernel has a workspace\n");
}

std::string MemoryText(const Plan& plan, const MemoryAdvice& advice) {
  std::string text = MemoryTable(plan);
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
    for (const Purpose& purpose : kPurposes) {
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
