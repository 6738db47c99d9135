// RoPE's keys in both dialects.
#include "absl/strings/str_cat.h"
#include "frontends/read_config.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

constexpr NumberRange kTheta = {0, 1e15, false, true};
constexpr NumberRange kShare = {0, 1, false, true};
constexpr NumberRange kFactor = {1, 1e9};
constexpr NumberRange kFrequencyFactor = {0, 1e9, false, true};

// The scaling that `value` gives, either dialect's object, or nothing if that is the default one.
// The newer dialect's holds theta and share, too: `newer`.
absl::optional<Llama3RopeScaling> ReadRopeScaling(const JsonValue& value, absl::string_view prefix,
                                                  const RopeKeys& keys, ModelConfig* newer,
                                                  FileDiagnostics* problems) {
  JsonObjectReader reader(value, prefix, problems);
  if (newer != nullptr) {
    newer->rope_theta = reader.Number("rope_theta", kTheta, 10000);
    if (!keys.share.empty()) {
      newer->rotary_share = reader.Number("partial_rotary_factor", kShare, keys.share_if_absent);
    }
  }
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

void ReadRope(const RopeKeys& keys, ConfigReading& file, ModelConfig* c) {
  JsonObjectReader& reader = file.reader;
  const JsonValue* parameters = reader.TakeUnlessNull("rope_parameters");
  c->rope_theta = reader.Number(keys.theta, kTheta, 10000);
  if (!keys.share.empty()) {
    c->rotary_share = reader.Number(keys.share, kShare, keys.share_if_absent);
  }
  const JsonValue* scaling = reader.TakeUnlessNull("rope_scaling");
  if (scaling != nullptr) {
    c->rope_scaling = ReadRopeScaling(*scaling, "rope_scaling.", keys, nullptr, &file.problems);
  }
  if (parameters == nullptr) return;
  const ModelConfig older = *c;
  c->rope_scaling = ReadRopeScaling(*parameters, "rope_parameters.", keys, c, &file.problems);
  const bool both = reader.Take(keys.theta) != nullptr || scaling != nullptr ||
                    (!keys.share.empty() && reader.Take(keys.share) != nullptr);
  if (both && !(older == *c)) {
    file.differences.push_back(absl::StrCat(parameters->line, ":", parameters->column,
                                            ": rope_parameters differs from ", keys.theta,
                                            " and rope_scaling, and is used"));
  }
}

}  // namespace mgc
