#include "tools/views/memory.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/format.h"

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

}  // namespace

std::string MemoryText(const Plan& plan) {
  std::vector<std::vector<std::string>> rows = {{"pp", "ranks"}};
  std::vector<bool> right = {true, true};
  for (const Purpose& purpose : kPurposes) {
    rows[0].push_back(purpose.name);
    right.push_back(true);
  }
  const PlanClass* fullest = nullptr;
  for (const PlanClass& plan_class : plan.classes) {
    rows.push_back({absl::StrCat(plan_class.coordinate), absl::StrCat(RanksInClass(plan))});
    for (const Purpose& purpose : kPurposes) {
      rows.back().push_back(BytesText(plan_class.memory.*purpose.bytes));
    }
    if (fullest == nullptr || plan_class.memory.peak > fullest->memory.peak) fullest = &plan_class;
  }
  std::string text = TableText(rows, right);
  if (fullest == nullptr) return text;
  absl::StrAppend(&text, "highest peak: ", BytesText(fullest->memory.peak), " on pp ",
                  fullest->coordinate);
  if (plan.machine.memory > 0) {
    absl::StrAppend(&text, ", of ", BytesText(plan.machine.memory), " on ", plan.machine.name);
  }
  return absl::StrCat(text, "; beside it every thread of a running kernel has a workspace\n");
}

std::string MemoryJson(const Plan& plan) {
  JsonWriter json;
  json.BeginObject().Integer("device_bytes", plan.machine.memory).Key("classes").BeginArray();
  for (const PlanClass& plan_class : plan.classes) {
    json.NewLine().BeginObject().Integer("pp", plan_class.coordinate);
    json.Integer("ranks", RanksInClass(plan));
    for (const Purpose& purpose : kPurposes) {
      json.Integer(purpose.name, plan_class.memory.*purpose.bytes);
    }
    json.EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
