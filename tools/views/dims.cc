#include "tools/views/dims.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/format.h"

namespace mgc {

std::string DimsText(const LayoutCost& uncut, const std::vector<ClassChoice>& classes) {
  std::vector<std::vector<std::string>> rows = {
      {"class", "size", "parameters", "on a rank, cut over tp", "predicted step"},
      {"(none)", "-", "-", BytesText(uncut.parameter_bytes), DurationText(uncut.step_ns)}};
  std::string refusals;
  for (const ClassChoice& c : classes) {
    const bool cut = c.divides && c.refused.ok();
    rows.push_back({c.name, absl::StrJoin(c.sizes, ", "), BytesText(c.parameter_bytes),
                    cut         ? BytesText(c.alone.parameter_bytes)
                    : c.divides ? "refused"
                                : "tp does not divide it",
                    cut ? DurationText(c.alone.step_ns) : "-"});
    if (!c.refused.ok()) absl::StrAppend(&refusals, c.name, ": ", c.refused.message(), "\n");
  }
  return TableText(rows, {false, true, true, true, true}) + refusals;
}

std::string DimsJson(const LayoutCost& uncut, const std::vector<ClassChoice>& classes) {
  JsonWriter json;
  const auto add_cost = [&](const LayoutCost& cost) {
    json.Integer("rank_parameter_bytes", cost.parameter_bytes).Integer("step_ns", cost.step_ns);
  };
  json.BeginObject().Key("uncut").BeginObject();
  add_cost(uncut);
  json.EndObject().Key("classes").BeginArray();
  for (const ClassChoice& c : classes) {
    const std::vector<int64_t> sizes(c.sizes.begin(), c.sizes.end());
    json.NewLine().BeginObject().String("class", c.name).Key("sizes").Integers(sizes);
    json.Integer("parameter_bytes", c.parameter_bytes).Bool("divides", c.divides);
    if (!c.refused.ok()) {
      json.String("refused", c.refused.message());
    } else if (c.divides) {
      add_cost(c.alone);
    }
    json.EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
