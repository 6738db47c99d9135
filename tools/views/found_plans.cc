#include "tools/views/found_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "passes/config/config_flags.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

std::string ShareNumber(int64_t part, int64_t all) {
  return absl::StrFormat("%.1f", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::string Share(int64_t part, int64_t all) {
  return all == 0 ? "-" : absl::StrCat(ShareNumber(part, all), " %");
}

// In all, and over which axes most of it.
std::string ExposedText(const FoundPlan& plan) {
  constexpr size_t kMostAxes = 3;
  const auto& exposed = plan.parts.exposed_ns;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(exposed.size(), kMostAxes); ++i) {
    const std::string share = ShareNumber(exposed[i].second, plan.step_ns);
    if (share != "0.0") parts.push_back(absl::StrCat(exposed[i].first, " ", share));
  }
  const std::string all = Share(plan.parts.ExposedNs(), plan.step_ns);
  return parts.empty() ? all : absl::StrCat(all, ": ", absl::StrJoin(parts, ", "));
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
  return TableText(PlanRows(plans), {true, true, true, false, true, true, true, false, false});
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
      .Integer("exposed_ns", plan.parts.ExposedNs())
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
      .Key("exposed_over")
      .BeginObject();
  for (const auto& [axes, ns] : plan.parts.exposed_ns) json->Integer(axes, ns);
  json->EndObject().EndObject();
}

struct Choice {
  const char* flag;
  bool FixedChoices::*fixed;
};
constexpr Choice kChoices[] = {
    {"--tp", &FixedChoices::tp},
    {"--cp", &FixedChoices::cp},
    {"--pp", &FixedChoices::pp},
    {"--schedule", &FixedChoices::chunks},
    {"--vp", &FixedChoices::chunks},
    {"--group-size", &FixedChoices::chunks},
    {"--sequence-parallel", &FixedChoices::sequence_parallel},
    {"--micro-batch-size", &FixedChoices::micro_batch_size},
    {"--recompute", &FixedChoices::recompute},
    {"--pipeline-layout", &FixedChoices::cuts},
    {"--zero", &FixedChoices::zero},
    {"--zero-group", &FixedChoices::zero_group},
    {"--order", &FixedChoices::order},
    {"--bf16", &FixedChoices::precision},
};

void WriteChoices(const char* key, const FixedChoices& fixed, bool open, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const std::string& flag : ChoicesOf(fixed, open)) json->String(flag);
  json->EndArray();
}

}  // namespace

std::vector<std::vector<std::string>> PlanRows(const std::vector<FoundPlan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"", "step", "compute", "exposed", "bubble", "update", "peak", "of it most", "flags"}};
  for (size_t i = 0; i < plans.size(); ++i) {
    const FoundPlan& plan = plans[i];
    rows.push_back({absl::StrCat(i + 1), DurationText(plan.step_ns),
                    Share(plan.parts.compute_ns, plan.step_ns), ExposedText(plan),
                    Share(plan.parts.bubble_ns, plan.step_ns),
                    Share(plan.parts.update_ns, plan.step_ns), BytesText(plan.peak_bytes),
                    MostOf(plan.memory), FlagsText(plan.config)});
  }
  return rows;
}

std::vector<std::string> ChoicesOf(const FixedChoices& fixed, bool open) {
  std::vector<std::string> flags;
  for (const Choice& choice : kChoices) {
    if (fixed.*choice.fixed != open) flags.emplace_back(choice.flag);
  }
  return flags;
}

std::string TitleOf(const SearchAnswer& answer) {
  return absl::StrCat(answer.model, " on ", answer.found.ranked.front().config.world_size,
                      " ranks of ", answer.machine.name, ": the fastest plans");
}

std::string SearchedText(const SearchAnswer& answer) {
  const FoundPlans& found = answer.found;
  return absl::StrCat(found.candidates, " candidates on ", answer.machine.name, ", ", found.refused,
                      " combinations refused, ", found.too_large, " need more than ",
                      BytesText(answer.machine.memory), "; ", found.profiled, " profiles, ",
                      found.compiled, " plans compiled: ", GapText(found));
}

std::string FoundPlansText(const SearchAnswer& answer) {
  const FoundPlans& found = answer.found;
  std::string text = absl::StrCat(SearchedText(answer), "\n\n", PlansTable(found.ranked));
  if (found.front.size() > 1) {
    absl::StrAppend(&text, "\nthe fastest of less memory\n", PlansTable(found.front));
  }
  if (answer.why_not.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"instead", "why not"}};
  for (const RejectedPlan& rejected : answer.why_not) {
    rows.push_back({rejected.change, rejected.why});
  }
  absl::StrAppend(&text, "\n", TableText(rows, {false, false}));
  return text;
}

std::string FoundPlansJson(const SearchAnswer& answer) {
  const FoundPlans& found = answer.found;
  JsonWriter json;
  json.BeginObject()
      .String("model", answer.model)
      .String("machine", answer.machine.name)
      .Integer("device_bytes", answer.machine.memory);
  WriteChoices("searched", answer.fixed, true, &json);
  WriteChoices("fixed", answer.fixed, false, &json);
  json.Integer("budget", answer.budget)
      .Integer("candidates", found.candidates)
      .Integer("refused", found.refused)
      .Integer("too_large", found.too_large)
      .Integer("profiled", found.profiled)
      .Integer("compiled", found.compiled)
      .Integer("least_bound_ns", found.least_bound_ns);
  for (const auto& [name, plans] :
       {std::make_pair("ranked", &found.ranked), std::make_pair("front", &found.front),
        std::make_pair("known", &found.known)}) {
    json.Key(name).BeginArray();
    for (const FoundPlan& plan : *plans) WritePlan(plan, &json);
    json.NewLine().EndArray();
  }
  json.Key("why_not").BeginArray();
  for (const RejectedPlan& rejected : answer.why_not) {
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
