#include "runtime/state/manifest.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_reader.h"
#include "graph/base/json_writer.h"
#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr size_t kHashDigits = 16;
// The last member, behind everything that it is the hash of.
constexpr absl::string_view kHashBegin = "\n\"hash\": \"";
constexpr absl::string_view kHashEnd = "\"}\n";

std::string HexText(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

std::string HashText(absl::string_view text) { return HexText(StreamOf(text)); }

void WriteTexts(absl::string_view key, const NamedTexts& texts, JsonWriter* json) {
  json->NewLine().Key(key).BeginObject();
  for (const auto& [name, value] : texts) json->NewLine(1).String(name, value);
  json->EndObject();
}

void WriteFile(const StoredFile& file, JsonWriter* json) {
  json->NewLine(1).Key(file.name).BeginObject();
  for (const StoredTensor& tensor : file.tensors) {
    json->NewLine(2).Key(tensor.name).BeginObject().Key("shape").Integers(tensor.shape);
    json->Integer("offset", tensor.offset).String("hash", HexText(tensor.hash)).EndObject();
  }
  json->EndObject();
}

// Reads what is known to be as it was written; what cannot be is collected.
class Reader {
 public:
  explicit Reader(absl::string_view file) : problems_(file) {}

  absl::StatusOr<Manifest> Read(const JsonValue& root) {
    Manifest manifest;
    JsonObjectReader object(root, "", &problems_);
    object.Integer("version", {kManifestVersion, kManifestVersion});
    if (object.Failed("version")) return problems_.ToStatus();
    TrainingState& state = manifest.state;
    state.version = Text("mgc", object.Take("mgc"));
    state.step = object.Integer("step", {0, kMost});
    state.samples = object.Integer("samples", {0, kMost});
    for (const JsonMember& member : Members("carried", object.Take("carried"))) {
      if (!member.value.is_number()) Problem(member.value, member.key, "a number");
      state.carried.emplace_back(member.key, member.value.number);
    }
    state.options = Texts("options", object.Take("options"));
    state.data = Texts("data", object.Take("data"));
    for (const JsonMember& member : Members("files", object.Take("files"))) {
      manifest.files.push_back(ReadFile(member));
    }
    Text("hash", object.Take("hash"));
    object.Finish();
    MGC_RETURN_IF_ERROR(problems_.ToStatus());
    return manifest;
  }

 private:
  void Problem(const JsonValue& at, absl::string_view key, absl::string_view wanted) {
    problems_.Add(at.place(), "J2",
                  absl::StrCat(EscapeBytes(key), " must be ", wanted, ", not ", KindName(at.kind)));
  }

  std::string Text(absl::string_view key, const JsonValue* value) {
    if (value == nullptr) {
      problems_.Add({}, "J4", absl::StrCat(key, " is missing"));
      return "";
    }
    if (value->kind != JsonValue::Kind::kString) Problem(*value, key, "a string");
    return value->text;
  }

  std::vector<JsonMember> Members(absl::string_view key, const JsonValue* value) {
    if (value == nullptr) {
      problems_.Add({}, "J4", absl::StrCat(key, " is missing"));
      return {};
    }
    if (value->kind != JsonValue::Kind::kObject) Problem(*value, key, "an object");
    return value->members;
  }

  NamedTexts Texts(absl::string_view key, const JsonValue* value) {
    NamedTexts texts;
    for (const JsonMember& member : Members(key, value)) {
      texts.emplace_back(member.key, Text(member.key, &member.value));
    }
    return texts;
  }

  StoredFile ReadFile(const JsonMember& member) {
    StoredFile file;
    file.name = member.key;
    // Nothing outside of the folder is a checkpoint's.
    if (absl::StrContains(file.name, '/') || file.name.empty() || file.name[0] == '.') {
      problems_.Add(member.value.place(), "J5",
                    absl::StrCat(EscapeBytes(file.name), " names no file of the folder"));
    }
    for (const JsonMember& tensor : Members(member.key, &member.value)) {
      file.tensors.push_back(ReadTensor(tensor));
    }
    return file;
  }

  StoredTensor ReadTensor(const JsonMember& member) {
    StoredTensor tensor;
    tensor.name = member.key;
    JsonObjectReader object(member.value, absl::StrCat(member.key, "."), &problems_);
    tensor.offset = object.Integer("offset", {0, kMost});
    const std::string hash = Text("hash", object.Take("hash"));
    if (hash.size() != kHashDigits || !absl::SimpleHexAtoi(hash, &tensor.hash)) {
      problems_.Add(member.value.place(), "J5", "a hash has 16 hexadecimal digits");
    }
    const JsonValue* shape = object.Take("shape");
    if (shape == nullptr || shape->kind != JsonValue::Kind::kArray) {
      Problem(member.value, "shape", "a list of sizes");
      return tensor;
    }
    for (const JsonValue& size : shape->items) {
      if (size.kind != JsonValue::Kind::kInteger || size.integer < 0) {
        Problem(size, "shape", "a list of sizes");
      }
      tensor.shape.push_back(size.integer);
    }
    object.Finish();
    return tensor;
  }

  FileDiagnostics problems_;
};

}  // namespace

std::string ManifestText(const Manifest& manifest) {
  JsonWriter json;
  const TrainingState& state = manifest.state;
  json.BeginObject().Integer("version", kManifestVersion).String("mgc", state.version);
  json.NewLine().Integer("step", state.step).Integer("samples", state.samples);
  json.NewLine().Key("carried").BeginObject();
  for (const auto& [name, value] : state.carried) json.Number(name, value);
  json.EndObject();
  WriteTexts("options", state.options, &json);
  WriteTexts("data", state.data, &json);
  json.NewLine().Key("files").BeginObject();
  for (const StoredFile& file : manifest.files) WriteFile(file, &json);
  std::string text = std::move(json.EndObject().EndObject()).Text();
  // The closing bracket comes behind the hash.
  text.back() = ',';
  const std::string hash = HashText(text);
  return absl::StrCat(text, kHashBegin, hash, kHashEnd);
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text, absl::string_view file) {
  absl::string_view body = text;
  const size_t tail = kHashBegin.size() + kHashDigits + kHashEnd.size();
  const absl::string_view end = body.size() < tail ? "" : body.substr(body.size() - tail);
  body.remove_suffix(end.size());
  if (!absl::StartsWith(end, kHashBegin) || !absl::EndsWith(end, kHashEnd) ||
      end.substr(kHashBegin.size(), kHashDigits) != HashText(body)) {
    return absl::DataLossError(
        absl::StrCat(EscapeBytes(file), ": it is damaged: its hash is not that of its text"));
  }
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, file));
  return Reader(file).Read(root);
}

}  // namespace mgc
