#include "tools/models/adapter_dir.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "frontends/families.h"
#include "frontends/weights/adapter_targets.h"
#include "frontends/weights/weight_map.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/weights/adapters.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/state/manifest.h"
#include "runtime/weights/export_weights.h"

namespace mgc {
namespace {

constexpr char kAdapterConfig[] = "adapter_config.json";
constexpr char kAdapterWeights[] = "adapter_model.safetensors";

// The keys that say what is computed, beside those that peft asks for.
std::string ConfigText(const PublishedAdapter& adapter, bool causal, const std::string& base) {
  JsonWriter json;
  const auto text_or_null = [&json](const char* key, const std::string& text) {
    json.NewLine(2).Key(key);
    text.empty() ? json.Null() : json.String(text);
  };
  json.BeginObject();
  text_or_null("base_model_name_or_path", base);
  json.NewLine(2).String("bias", "none");
  json.NewLine(2).Bool("fan_in_fan_out", adapter.fan_in_fan_out);
  json.NewLine(2).Bool("inference_mode", true);
  json.NewLine(2).Bool("init_lora_weights", true);
  json.NewLine(2).Number("lora_alpha", adapter.options.alpha);
  json.NewLine(2).Number("lora_dropout", 0);
  json.NewLine(2).String("peft_type", "LORA");
  json.NewLine(2).Integer("r", adapter.options.rank);
  json.NewLine(2).Key("target_modules").BeginArray();
  for (const std::string& module : adapter.modules) json.String(module);
  json.EndArray();
  text_or_null("task_type", causal ? "CAUSAL_LM" : "");
  json.NewLine(2).Bool("use_dora", false);
  json.NewLine(2).Bool("use_rslora", false);
  return std::move(json.NewLine().EndObject()).Finish();
}

using Said = std::map<std::string, std::string>;

// What options say of an adapter; `whose` they are.
absl::StatusOr<absl::optional<PublishedAdapter>> AdapterOf(Said said, const std::string& whose,
                                                           const ModelConfig& config) {
  if (said.count(kAdapterRank) == 0) return absl::optional<PublishedAdapter>();
  PublishedAdapter adapter;
  const bool reads = absl::SimpleAtoi(said[kAdapterRank], &adapter.options.rank) &&
                     absl::SimpleAtod(said[kAdapterAlpha], &adapter.options.alpha) &&
                     adapter.options.rank > 0 && std::isfinite(adapter.options.alpha);
  if (!reads) {
    return absl::InvalidArgumentError(absl::StrCat(whose, ": an adapter of rank ",
                                                   EscapeBytes(said[kAdapterRank]), " and alpha ",
                                                   EscapeBytes(said[kAdapterAlpha])));
  }
  AdapterTargets targets =
      FindAdapterTargets(config, absl::StrSplit(said[kAdapterTargets], ',', absl::SkipEmpty()));
  MGC_RETURN_IF_ERROR(Annotate(targets.problems.ToStatus(absl::StatusCode::kFailedPrecondition),
                               absl::StrCat(whose, ": the adapter")));
  adapter.options.layers = std::move(targets.layers);
  adapter.modules = std::move(targets.modules);
  adapter.fan_in_fan_out = targets.fan_in_fan_out;
  return absl::make_optional(std::move(adapter));
}

// Whether a key of peft's says nothing: it is not there, null, false, "none" or empty.
bool SaysNothing(const JsonValue* value) {
  if (value == nullptr || value->kind == JsonValue::Kind::kNull) return true;
  if (value->kind == JsonValue::Kind::kBool) return !value->boolean;
  if (value->is_number()) return false;
  if (value->kind == JsonValue::Kind::kString) return value->text == "none";
  return value->members.empty() && value->items.empty();
}

// What adapters of peft may do and those here do not.
constexpr const char* kForeignKeys[] = {"alora_invocation_tokens",
                                        "alpha_pattern",
                                        "arrow_config",
                                        "bias",
                                        "kasa_config",
                                        "layer_replication",
                                        "layers_to_transform",
                                        "lora_bias",
                                        "megatron_config",
                                        "modules_to_save",
                                        "monteclora_config",
                                        "rank_pattern",
                                        "target_parameters",
                                        "use_bdlora",
                                        "trainable_token_indices",
                                        "use_dora",
                                        "use_qalora",
                                        "use_rslora",
                                        "velora_config"};

absl::Status CheckConfig(const std::string& path, const AdapterOptions& wanted,
                         std::vector<std::string>* notes) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, path));
  FileDiagnostics problems(path);
  const auto same = [&](const char* key, double plans) {
    const JsonValue* const value = root.Find(key);
    const bool reads = value != nullptr && value->is_number();
    if (reads && value->number == plans) return;
    problems.Add(value == nullptr ? root.place() : value->place(), "",
                 absl::StrCat("`", key, "` is ", reads ? JsonNumber(value->number) : "no number",
                              ", the plan's ", JsonNumber(plans)));
  };
  same("r", static_cast<double>(wanted.rank));
  same("lora_alpha", wanted.alpha);
  const JsonValue* const type = root.Find("peft_type");
  if (type == nullptr || type->text != "LORA") {
    problems.Add(type == nullptr ? root.place() : type->place(), "", "`peft_type` is not LORA");
  }
  for (const char* key : kForeignKeys) {
    const JsonValue* const value = root.Find(key);
    if (SaysNothing(value)) continue;
    problems.Add(value->place(), "", absl::StrCat("`", key, "` is of adapters that mgc has not"));
  }
  const JsonValue* const dropout = root.Find("lora_dropout");
  if (dropout != nullptr && dropout->is_number() && dropout->number != 0) {
    notes->push_back(absl::StrCat(EscapeBytes(path), ": `lora_dropout` ",
                                  JsonNumber(dropout->number),
                                  " is not read: nothing is dropped before an adapter"));
  }
  return problems.ToStatus();
}

}  // namespace

absl::StatusOr<absl::optional<PublishedAdapter>> AdapterOfCheckpoint(const std::string& folder,
                                                                     const ModelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  const NamedTexts& options = manifest.state.options;
  return AdapterOf({options.begin(), options.end()}, EscapeBytes(folder), config);
}

absl::StatusOr<ModelFiles> OpenAdapter(const std::string& path, const ModelConfig& config,
                                       const Plan& plan, std::vector<std::string>* notes) {
  Said said;
  for (const auto& [flag, value] : plan.options) {
    said.emplace(absl::StripPrefix(flag, "--"), value);
  }
  MGC_ASSIGN_OR_RETURN(const absl::optional<PublishedAdapter> adapter,
                       AdapterOf(said, "the plan", config));
  if (!adapter) {
    return absl::InvalidArgumentError(absl::StrCat(
        EscapeBytes(path), " is an adapter, and the plan has none: --lora-rank makes one"));
  }
  MGC_RETURN_IF_ERROR(
      CheckConfig(absl::StrCat(path, "/", kAdapterConfig), adapter->options, notes));
  MGC_ASSIGN_OR_RETURN(WeightMap map, AdapterMapOf(config, adapter->options));
  return ModelFiles::Open(path, std::move(map), kAdapterWeights);
}

absl::StatusOr<int64_t> WriteAdapter(const std::string& folder, const ModelConfig& config,
                                     const std::string& base, SafetensorsType type,
                                     const std::string& dir) {
  MGC_ASSIGN_OR_RETURN(const absl::optional<PublishedAdapter> adapter,
                       AdapterOfCheckpoint(folder, config));
  if (!adapter) {
    return absl::FailedPreconditionError(
        absl::StrCat(EscapeBytes(folder), " has no adapter; plans of --lora-rank train one"));
  }
  MGC_ASSIGN_OR_RETURN(const WeightMap map, AdapterMapOf(config, adapter->options));
  MGC_ASSIGN_OR_RETURN(const int64_t elements,
                       ExportPart(folder, map, type, absl::StrCat(dir, "/", kAdapterWeights)));
  const bool causal = !TraitsOf(config.family).bidirectional;
  MGC_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(dir, "/", kAdapterConfig),
                                          ConfigText(*adapter, causal, base)));
  return elements;
}

}  // namespace mgc
