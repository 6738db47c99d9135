#include "tools/views/dims.h"

#include "absl/strings/str_cat.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "tools/views/format.h"

namespace mgc {

std::string DimsText(const std::vector<ClassChoice>& classes) {
  std::vector<std::vector<std::string>> rows = {
      {"class", "size", "parameters", "on a rank, cut over tp", "predicted step"}};
  for (const ClassChoice& c : classes) {
    rows.push_back({c.name, absl::StrCat(c.size), BytesText(c.parameter_bytes),
                    c.divides ? BytesText(c.alone.parameter_bytes) : "tp does not divide it",
                    c.divides ? DurationText(c.alone.step_ns) : "-"});
  }
  return TableText(rows, {false, true, true, true, true});
}

std::string DimsJson(const std::vector<ClassChoice>& classes) {
  JsonWriter json;
  json.BeginArray();
  for (const ClassChoice& c : classes) {
    json.NewLine().BeginObject().String("class", c.name).Integer("size", c.size);
    json.Integer("parameter_bytes", c.parameter_bytes).Bool("divides", c.divides);
    if (c.divides) {
      json.Integer("rank_parameter_bytes", c.alone.parameter_bytes);
      json.Integer("step_ns", c.alone.step_ns);
    }
    json.EndObject();
  }
  json.NewLine().EndArray();
  return std::move(json).Finish();
}

}  // namespace mgc
