#include "tools/views/found_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

std::string Share(int64_t part, int64_t all) {
  return all == 0 ? "-"
                  : absl::StrFormat("%.1f %%",
                                    100.0 * static_cast<double>(part) / static_cast<double>(all));
}

// The purpose that takes most of a rank.
std::string MostOf(const MemoryUse& memory) {
  const std::vector<std::pair<int64_t, const char*>> parts = {
      {memory.params, "parameters"},   {memory.grads, "gradients"},
      {memory.states, "states"},       {memory.copies, "copies"},
      {memory.frames, "activations"},  {memory.boundaries, "boundaries"},
      {memory.transient, "transients"}};
  const auto most = std::max_element(parts.begin(), parts.end());
  return absl::StrCat(Share(most->first, memory.peak), " ", most->second);
}

std::string PlansTable(const std::vector<FoundPlan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"", "step", "compute", "exposed", "bubble", "update", "peak", "of it most", "flags"}};
  for (size_t i = 0; i < plans.size(); ++i) {
    const FoundPlan& plan = plans[i];
    rows.push_back(
        {absl::StrCat(i + 1), DurationText(plan.step_ns),
         Share(plan.parts.compute_ns, plan.step_ns), Share(plan.parts.exposed_ns, plan.step_ns),
         Share(plan.parts.bubble_ns, plan.step_ns), Share(plan.parts.update_ns, plan.step_ns),
         BytesText(plan.peak_bytes), MostOf(plan.memory), FlagsText(plan.config)});
  }
  return TableText(rows, {true, true, true, true, true, true, true, false, false});
}

std::string GapText(const FoundPlans& found) {
  const int64_t best = found.ranked.front().step_ns;
  if (found.least_bound_ns >= best) return "no other candidate is faster";
  return absl::StrCat("the budget has ended the search: another may be up to ",
                      Share(best - found.least_bound_ns, best), " faster");
}

void WritePlan(const FoundPlan& plan, JsonWriter* json) {
  const MemoryUse& m = plan.memory;
  json->NewLine()
      .BeginObject()
      .String("flags", FlagsText(plan.config))
      .Integer("step_ns", plan.step_ns)
      .Integer("compute_ns", plan.parts.compute_ns)
      .Integer("exposed_ns", plan.parts.exposed_ns)
      .Integer("bubble_ns", plan.parts.bubble_ns)
      .Integer("update_ns", plan.parts.update_ns)
      .Integer("peak", plan.peak_bytes)
      .Integer("params", m.params)
      .Integer("grads", m.grads)
      .Integer("states", m.states)
      .Integer("copies", m.copies)
      .Integer("frames", m.frames)
      .Integer("boundaries", m.boundaries)
      .Integer("transient", m.transient)
      .Integer("workspace", m.workspace)
      .EndObject();
}

}  // namespace

std::string FoundPlansText(const FoundPlans& found, const std::vector<RejectedPlan>& why_not,
                           const Machine& machine) {
  std::string text =
      absl::StrCat(found.candidates, " candidates on ", machine.name, ", ", found.refused,
                   " combinations refused, ", found.too_large, " need more than ",
                   BytesText(machine.memory), "; ", found.profiled, " profiles, ", found.compiled,
                   " plans compiled: ", GapText(found), "\n\n", PlansTable(found.ranked));
  if (found.front.size() > 1) {
    absl::StrAppend(&text, "\nthe fastest of less memory\n", PlansTable(found.front));
  }
  if (why_not.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"instead", "why not"}};
  for (const RejectedPlan& rejected : why_not) rows.push_back({rejected.change, rejected.why});
  absl::StrAppend(&text, "\n", TableText(rows, {false, false}));
  return text;
}

std::string FoundPlansJson(const FoundPlans& found, const std::vector<RejectedPlan>& why_not,
                           const Machine& machine) {
  JsonWriter json;
  json.BeginObject()
      .String("machine", machine.name)
      .Integer("device_bytes", machine.memory)
      .Integer("candidates", found.candidates)
      .Integer("refused", found.refused)
      .Integer("too_large", found.too_large)
      .Integer("profiled", found.profiled)
      .Integer("compiled", found.compiled)
      .Integer("least_bound_ns", found.least_bound_ns);
  for (const auto& [name, plans] :
       {std::make_pair("ranked", &found.ranked), std::make_pair("front", &found.front)}) {
    json.Key(name).BeginArray();
    for (const FoundPlan& plan : *plans) WritePlan(plan, &json);
    json.NewLine().EndArray();
  }
  json.Key("why_not").BeginArray();
  for (const RejectedPlan& rejected : why_not) {
    json.NewLine()
        .BeginObject()
        .String("change", rejected.change)
        .String("why", rejected.why)
        .EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
