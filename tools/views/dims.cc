#include "tools/views/dims.h"

#include "absl/strings/str_cat.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/format.h"

namespace mgc {

std::string DimsText(const LayoutCost& uncut, const std::vector<ClassChoice>& classes) {
  std::vector<std::vector<std::string>> rows = {
      {"class", "size", "parameters", "on a rank, cut over tp", "predicted step"},
      {"(none)", "-", "-", BytesText(uncut.parameter_bytes), DurationText(uncut.step_ns)}};
  for (const ClassChoice& c : classes) {
    rows.push_back({c.name, absl::StrCat(c.size), BytesText(c.parameter_bytes),
                    c.divides ? BytesText(c.alone.parameter_bytes) : "tp does not divide it",
                    c.divides ? DurationText(c.alone.step_ns) : "-"});
  }
  return TableText(rows, {false, true, true, true, true});
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
    json.NewLine().BeginObject().String("class", c.name).Integer("size", c.size);
    json.Integer("parameter_bytes", c.parameter_bytes).Bool("divides", c.divides);
    if (c.divides) add_cost(c.alone);
    json.EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
