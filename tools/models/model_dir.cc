#include "tools/models/model_dir.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "frontends/families.h"
#include "frontends/weights/weight_map.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "runtime/weights/export_weights.h"
#include "runtime/weights/import_weights.h"
#include "tools/models/adapter_dir.h"

namespace mgc {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "/config.json";
constexpr int64_t kMostCarriedBytes = int64_t{64} << 20;

absl::Status SystemStatus(const std::error_code& error, absl::string_view what,
                          const std::string& path) {
  return error ? SystemError(error.value(), what, path) : absl::OkStatus();
}

// The place of a line and column in `text`.
size_t OffsetOf(const std::string& text, const JsonValue& value) {
  size_t at = 0;
  for (int line = 1; line < value.line; ++line) at = text.find('\n', at) + 1;
  return at + static_cast<size_t>(value.column) - 1;
}

absl::string_view TorchName(SafetensorsType type) {
  if (type == SafetensorsType::kBF16) return "bfloat16";
  return type == SafetensorsType::kF16 ? "float16" : "float32";
}

// The configuration with the type that the weights have now; all else as it was.
absl::StatusOr<std::string> WithType(std::string text, const std::string& path,
                                     SafetensorsType type) {
  for (absl::string_view key : {"torch_dtype", "dtype"}) {
    MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, path));
    const JsonValue* const value = root.Find(key);
    if (value == nullptr || value->kind != JsonValue::Kind::kString) continue;
    if (absl::StripPrefix(value->text, "torch.") == TorchName(type)) continue;
    const std::string quoted = JsonQuote(value->text);
    const size_t at = OffsetOf(text, *value);
    if (text.compare(at, quoted.size(), quoted) != 0) continue;  // written with escapes
    text.replace(at, quoted.size(), JsonQuote(TorchName(type)));
  }
  return text;
}

// Whether a file goes along with a model: small, and neither weights nor what is written anew.
bool IsCarried(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  if (name == "config.json" || absl::EndsWith(name, ".index.json")) return false;
  std::error_code error;
  if (!entry.is_regular_file(error) || error) return false;
  if (entry.file_size(error) > kMostCarriedBytes || error) return false;
  for (absl::string_view ending : {".json", ".txt", ".model", ".jinja", ".md"}) {
    if (absl::EndsWith(name, ending)) return true;
  }
  return name == "LICENSE" || name == "NOTICE";
}

absl::Status CarryAlong(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::directory_iterator entries(from, error);
  MGC_RETURN_IF_ERROR(SystemStatus(error, "read", from));
  for (const fs::directory_entry& entry : entries) {
    if (!IsCarried(entry)) continue;
    MGC_ASSIGN_OR_RETURN(const std::string bytes,
                         ReadFile(entry.path().string(), kMostCarriedBytes));
    MGC_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(to, "/", entry.path().filename().string()), bytes));
  }
  return absl::OkStatus();
}

// What is to be written beside the weights, and of which types they are.
struct Likeness {
  ModelConfig model;
  WeightMap map;
  std::string config;  // the text of config.json
  ExportOptions options;
};

absl::StatusOr<Likeness> LikenessOf(const ExportRequest& request) {
  Likeness like;
  const bool folder = IsModelDir(request.like);
  const std::string path = folder ? request.like + kConfig : request.like;
  MGC_ASSIGN_OR_RETURN(like.model, LoadModelConfig(path));
  MGC_ASSIGN_OR_RETURN(like.map, WeightMapOf(like.model));
  like.options.types.assign(like.map.tensors.size(), request.type.value_or(SafetensorsType::kF32));
  like.options.shard_bytes = request.shard_bytes.value_or(kMostShardBytes);
  if (!folder) {
    like.config = ModelConfigToJson(like.model);
    return like;
  }
  MGC_ASSIGN_OR_RETURN(like.config, ReadFile(path));
  if (!request.type) {
    const absl::StatusOr<ModelFiles> files = ModelFiles::Open(request.like, like.map);
    if (!files.ok() && !absl::IsNotFound(files.status())) return files.status();
    for (size_t t = 0; files.ok() && t < like.map.tensors.size(); ++t) {
      like.options.types[t] = files->TypeOf(t);
    }
  }
  MGC_ASSIGN_OR_RETURN(like.config, WithType(std::move(like.config), path, like.options.types[0]));
  return like;
}

// Lets what an adapter of the checkpoint adds be added to the weights.
absl::Status Merge(const ExportRequest& request, Likeness* like) {
  MGC_ASSIGN_OR_RETURN(const auto adapter, AdapterOfCheckpoint(request.checkpoint, like->model));
  if (!adapter) return absl::OkStatus();
  MGC_ASSIGN_OR_RETURN(const std::vector<AdaptedParameter> adapted,
                       AdaptedParameters(like->model, adapter->options));
  for (const AdaptedParameter& of : adapted) {
    like->options.terms.push_back({of.parameter, of.a, of.b, adapter->options.Scale()});
    like->options.left_out.insert({of.a, of.b});
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> WriteAdapterOf(const ExportRequest& request, const std::string& dir) {
  const bool folder = IsModelDir(request.like);
  MGC_ASSIGN_OR_RETURN(const ModelConfig model,
                       LoadModelConfig(folder ? request.like + kConfig : request.like));
  return WriteAdapter(request.checkpoint, model, folder ? request.like : "",
                      request.type.value_or(SafetensorsType::kF32), dir);
}

absl::StatusOr<int64_t> WriteInto(const ExportRequest& request, const std::string& dir) {
  if (request.adapter_only) return WriteAdapterOf(request, dir);
  MGC_ASSIGN_OR_RETURN(Likeness like, LikenessOf(request));
  MGC_RETURN_IF_ERROR(Merge(request, &like));
  MGC_ASSIGN_OR_RETURN(const int64_t elements,
                       ExportWeights(request.checkpoint, like.map, like.options, dir));
  MGC_RETURN_IF_ERROR(WriteFileAtomically(dir + kConfig, like.config));
  if (IsModelDir(request.like)) MGC_RETURN_IF_ERROR(CarryAlong(request.like, dir));
  return elements;
}

absl::Status AddAdapter(const std::string& path, const Plan& plan, ModelDir* model) {
  MGC_ASSIGN_OR_RETURN(ModelFiles adapter, OpenAdapter(path, model->config, plan, &model->notes));
  for (std::string& line : adapter.Report()) model->notes.push_back(std::move(line));
  model->files.Add(std::move(adapter));
  return absl::OkStatus();
}

absl::Status CheckSameModel(const ModelDir& dir, const Plan& plan) {
  const absl::string_view family = TraitsOf(dir.config.family).model_type;
  for (const FamilyTraits& traits : ModelFamilies()) {
    if (plan.model.name() != traits.model_type || traits.model_type == family) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        EscapeBytes(dir.files.dir()), " is of ", family, ", and the plan of ", traits.model_type));
  }
  return CheckSameParameters(dir.files, plan);
}

}  // namespace

bool IsModelDir(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path + kConfig, error);
}

absl::StatusOr<ModelDir> OpenModelDir(const std::string& path) {
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(path + kConfig, &notes));
  MGC_ASSIGN_OR_RETURN(WeightMap map, WeightMapOf(config));
  MGC_ASSIGN_OR_RETURN(ModelFiles files, ModelFiles::Open(path, std::move(map)));
  for (std::string& line : files.Report()) notes.push_back(std::move(line));
  return ModelDir{config, std::move(files), std::move(notes)};
}

absl::StatusOr<ModelDir> OpenModelFor(const Plan& plan, const std::string& path,
                                      const absl::optional<std::string>& adapter) {
  MGC_ASSIGN_OR_RETURN(ModelDir model, OpenModelDir(path));
  if (adapter) MGC_RETURN_IF_ERROR(AddAdapter(*adapter, plan, &model));
  MGC_RETURN_IF_ERROR(CheckSameModel(model, plan));
  return model;
}

absl::StatusOr<int64_t> ExportModelDir(const ExportRequest& request) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", request.output));
  std::error_code error;
  if (fs::exists(request.output, error) && !fs::is_empty(request.output, error)) {
    return absl::AlreadyExistsError(absl::StrCat(
        EscapeBytes(request.output), " is there; give the model a new or an empty folder"));
  }
  const fs::path output = fs::path(request.output).lexically_normal();
  const std::string target =
      output.has_filename() ? output.string() : output.parent_path().string();
  std::string beside = absl::StrCat(target, ".tmp-XXXXXX");
  if (!output.parent_path().empty()) {
    fs::create_directories(fs::path(target).parent_path(), error);
  }
  if (mkdtemp(beside.data()) == nullptr) return SystemError(errno, "write", target);
  absl::StatusOr<int64_t> elements = WriteInto(request, beside);
  if (elements.ok()) {
    fs::permissions(beside, fs::perms(0755), error);
    fs::rename(beside, target, error);
    if (error) elements = SystemStatus(error, "write", target);
  }
  if (!elements.ok()) fs::remove_all(beside, error);
  return elements;
}

}  // namespace mgc
