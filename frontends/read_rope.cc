// RoPE's keys in both dialects.
#include "absl/strings/str_cat.h"
#include "frontends/read_config.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr NumberRange kTheta = {0, 1e15, false, true};
constexpr NumberRange kFactor = {1, 1e9};
constexpr NumberRange kFrequencyFactor = {0, 1e9, false, true};

// The scaling that `value` gives, either dialect's object, or nothing if that is the default one.
// `theta` is read from the newer dialect's.
absl::optional<Llama3RopeScaling> ReadRopeScaling(const JsonValue& value, absl::string_view prefix,
                                                  double* theta, FileDiagnostics* problems) {
  JsonObjectReader reader(value, prefix, problems);
  if (theta != nullptr) *theta = reader.Number("rope_theta", kTheta, 10000);
  absl::string_view type_key =
      value.Find("type") != nullptr && value.Find("rope_type") == nullptr ? "type" : "rope_type";
  bool llama3 = reader.Choice(type_key, {"default", "llama3"}, 0) == 1;
  if (reader.Failed(type_key))
    return absl::nullopt;  // the keys of another type would only add noise
  absl::optional<Llama3RopeScaling> scaling;
  if (llama3) {
    scaling.emplace();
    scaling->factor = reader.Number("factor", kFactor);
    scaling->low_freq_factor = reader.Number("low_freq_factor", kFrequencyFactor);
    scaling->high_freq_factor = reader.Number("high_freq_factor", kFrequencyFactor);
    scaling->original_max_positions =
        reader.Integer("original_max_position_embeddings", kSizeRange);
    if (!reader.Failed("low_freq_factor") && !reader.Failed("high_freq_factor") &&
        scaling->low_freq_factor >= scaling->high_freq_factor) {
      reader.Problem("low_freq_factor",
                     absl::StrCat("low_freq_factor ", scaling->low_freq_factor,
                                  " must be below high_freq_factor ", scaling->high_freq_factor),
                     "C4");
    }
  }
  if (type_key == "rope_type" && value.Find("type") != nullptr)
    reader.Choice("type", {"default", "llama3"}, 0);
  reader.Finish();
  return scaling;
}

}  // namespace

void ReadRope(ConfigReading& file, ModelConfig* c) {
  JsonObjectReader* reader = &file.reader;
  FileDiagnostics* problems = &file.problems;
  const JsonValue* parameters = reader->TakeUnlessNull("rope_parameters");
  c->rope_theta = reader->Number("rope_theta", kTheta, 10000);
  const JsonValue* scaling = reader->TakeUnlessNull("rope_scaling");
  if (scaling != nullptr)
    c->rope_scaling = ReadRopeScaling(*scaling, "rope_scaling.", nullptr, problems);
  if (parameters == nullptr) return;
  ModelConfig older = *c;
  c->rope_scaling = ReadRopeScaling(*parameters, "rope_parameters.", &c->rope_theta, problems);
  bool both = reader->Take("rope_theta") != nullptr || scaling != nullptr;
  if (both && !(older == *c)) {
    file.differences.push_back(
        absl::StrCat(parameters->line, ":", parameters->column,
                     ": rope_parameters differs from rope_theta and rope_scaling, and is used"));
  }
}

}  // namespace mgc
