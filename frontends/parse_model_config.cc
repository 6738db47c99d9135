// ParseModelConfig: the family's keys by read_config.h, and what is the same for all families.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/families.h"
#include "frontends/model_config.h"
#include "frontends/read_config.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_reader.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr double kMaxParameters = 1e15;

constexpr absl::string_view kHarmless[] = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "label2id",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "use_cache",
};

// The legal values of model_type, in the order of ModelFamilies().
std::vector<absl::string_view> ModelTypes() {
  std::vector<absl::string_view> types;
  for (const FamilyTraits& traits : ModelFamilies()) types.push_back(traits.model_type);
  return types;
}

// ParameterCount in floating point, which does not overflow.
double ApproximateParameters(const ModelConfig& c) {
  double hidden = c.hidden;
  double attention = 2.0 * (c.heads + c.kv_heads) * c.head_dim;
  return hidden * (2.0 * c.vocab + c.max_positions + c.layers * (attention + 3.0 * c.ffn + 8));
}

void Note(absl::string_view file, const std::vector<const JsonMember*>& ignored,
          const std::vector<std::string>& differences, std::vector<std::string>* notes) {
  if (notes == nullptr) return;
  const auto append_key = [](std::string* out, const JsonMember* member) {
    out->append(EscapeBytes(member->key));
  };
  if (!ignored.empty()) {
    notes->push_back(absl::StrCat(EscapeBytes(file), ": ignored, they change nothing here: ",
                                  absl::StrJoin(ignored, ", ", append_key)));
  }
  for (const std::string& text : differences)
    notes->push_back(absl::StrCat(EscapeBytes(file), ":", text));
}

}  // namespace

absl::StatusOr<ModelConfig> ParseModelConfig(absl::string_view text, absl::string_view file,
                                             std::vector<std::string>* notes) {
  JsonValue root;
  MGC_ASSIGN_OR_RETURN(root, ParseJson(text, file));
  return ParseModelConfig(root, file, notes);
}

absl::StatusOr<ModelConfig> ParseModelConfig(const JsonValue& root, absl::string_view file,
                                             std::vector<std::string>* notes) {
  FileDiagnostics problems(file);
  JsonObjectReader reader(root, "", &problems);
  const size_t choice = reader.Choice("model_type", ModelTypes());
  // The keys of an unknown family would only add noise.
  MGC_RETURN_IF_ERROR(problems.ToStatus());

  std::vector<std::string> differences;
  ConfigReading reading{reader, problems, differences};
  const ModelFamily family = ModelFamilies()[choice].family;
  const ModelConfig config = ReadConfig(family, reading);
  std::vector<const JsonMember*> ignored;
  reader.Ignore(kHarmless, &ignored);
  reader.Ignore(HarmlessKeys(family), &ignored);
  reader.Finish();
  if (problems.empty() && ApproximateParameters(config) > kMaxParameters) {
    problems.Add(root.place(), "C3",
                 absl::StrCat("the model has some ", ApproximateParameters(config),
                              " parameters; at most 1e15 are supported"));
  }
  MGC_RETURN_IF_ERROR(problems.ToStatus());
  Note(file, ignored, differences, notes);
  return config;
}

}  // namespace mgc
