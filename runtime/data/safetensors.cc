#include "runtime/data/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little endian");

constexpr int64_t kPrefixBytes = 8;
// HF's JavaScript reader refuses longer headers.
constexpr int64_t kMaxHeaderBytes = 25000000;
constexpr double kMostDataBytes = 1e18;
constexpr absl::string_view kMetadata = "__metadata__";

struct TypeInfo {
  SafetensorsType type;
  absl::string_view name;
  int64_t bytes;
};

// In the order in which a file holds them.
constexpr TypeInfo kTypes[] = {
    {SafetensorsType::kI64, "I64", 8},   {SafetensorsType::kF64, "F64", 8},
    {SafetensorsType::kI32, "I32", 4},   {SafetensorsType::kF32, "F32", 4},
    {SafetensorsType::kBF16, "BF16", 2}, {SafetensorsType::kF16, "F16", 2},
};

const TypeInfo& InfoOf(SafetensorsType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  MGC_CHECK(false) << "type " << static_cast<int>(type);
  return kTypes[0];
}

const TypeInfo* FindType(absl::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string TypeNames() {
  return absl::StrJoin(kTypes, ", ", [](std::string* out, const TypeInfo& info) {
    absl::StrAppend(out, info.name);
  });
}

// The bytes of a tensor, or -1 if a dim is negative or the product overflows.
int64_t ByteCount(const TypeInfo& type, absl::Span<const int64_t> shape) {
  int64_t bytes = type.bytes;
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  }
  return bytes;
}

template <typename T>
SafetensorsView MakeView(std::string name, SafetensorsType type, std::vector<int64_t> shape,
                         absl::Span<const T> values) {
  absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return {std::move(name), type, std::move(shape), bytes};
}

absl::Status CheckSpecs(absl::Span<const SafetensorsSpec> tensors) {
  double sum = 0;
  std::vector<absl::string_view> names;
  for (const SafetensorsSpec& tensor : tensors) {
    const int64_t bytes = ByteCount(InfoOf(tensor.type), tensor.shape);
    sum += static_cast<double>(bytes);
    if (bytes < 0 || sum > kMostDataBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", EscapeBytes(tensor.name), " of shape [",
                       absl::StrJoin(tensor.shape, ","), "] makes a file that is too large"));
    }
    const absl::StatusOr<JsonValue> quoted = ParseJson(JsonQuote(tensor.name), "");
    if (tensor.name == kMetadata || !quoted.ok() || quoted->text != tensor.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("no tensor can be named ", EscapeBytes(tensor.name)));
    }
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("two tensors are named ", *twice));
  }
  return absl::OkStatus();
}

// The header of tensors in `order` with the length before it, padded so that the data begins at a
// multiple of 8. `begins`: of each, from the begin of the data.
std::string MakeHeader(absl::Span<const SafetensorsSpec> tensors, absl::Span<const size_t> order,
                       absl::Span<const int64_t> begins) {
  // Readers of HF's transformers refuse a file that does not name its format.
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject().Key(kMetadata).BeginObject().String("format", "pt").EndObject();
  for (size_t place : order) {
    const SafetensorsSpec& tensor = tensors[place];
    const TypeInfo& type = InfoOf(tensor.type);
    const int64_t end = begins[place] + ByteCount(type, tensor.shape);
    json.Key(tensor.name).BeginObject().String("dtype", type.name);
    json.Key("shape").Integers(tensor.shape).Key("data_offsets").Integers({begins[place], end});
    json.EndObject();
  }
  std::string header = std::move(json.EndObject()).Text();
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t size = header.size();
  std::string prefix(kPrefixBytes, '\0');
  std::memcpy(prefix.data(), &size, kPrefixBytes);
  return prefix + header;
}

// Reads one header entry; errors are relative to the file.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view file) : file_(file) {}

  absl::StatusOr<std::map<std::string, SafetensorsFile::Entry>> Read(const JsonValue& root) const {
    if (root.kind != JsonValue::Kind::kObject) return Error(root, "the header is not an object");
    std::map<std::string, SafetensorsFile::Entry> entries;
    for (const JsonMember& member : root.members) {
      if (member.key == kMetadata) {
        MGC_RETURN_IF_ERROR(CheckMetadata(member.value));
        continue;
      }
      SafetensorsFile::Entry entry;
      MGC_ASSIGN_OR_RETURN(entry, ReadEntry(member.key, member.value));
      entries.emplace(member.key, std::move(entry));
    }
    return entries;
  }

 private:
  absl::Status Error(const JsonValue& at, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(file_), ": header ", at.line, ":", at.column, ": ", what));
  }

  absl::Status CheckMetadata(const JsonValue& metadata) const {
    if (metadata.kind != JsonValue::Kind::kObject)
      return Error(metadata, "__metadata__ is not an object");
    for (const JsonMember& member : metadata.members) {
      if (member.value.kind != JsonValue::Kind::kString) {
        return Error(member.value, "a value of __metadata__ is not a string");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int64_t>> ReadSizes(const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::kArray) return Error(value, "not a list of sizes");
    std::vector<int64_t> sizes;
    for (const JsonValue& item : value.items) {
      if (item.kind != JsonValue::Kind::kInteger || item.integer < 0)
        return Error(item, "not a size");
      sizes.push_back(item.integer);
    }
    return sizes;
  }

  absl::StatusOr<SafetensorsFile::Entry> ReadEntry(const std::string& name,
                                                   const JsonValue& value) const {
    std::string tensor = absl::StrCat("tensor ", EscapeBytes(name));
    const JsonValue* dtype = value.Find("dtype");
    const JsonValue* shape = value.Find("shape");
    const JsonValue* offsets = value.Find("data_offsets");
    if (dtype == nullptr || shape == nullptr || offsets == nullptr || value.members.size() != 3) {
      return Error(value,
                   absl::StrCat(tensor, " has other keys than dtype, shape and data_offsets"));
    }
    const TypeInfo* type = FindType(dtype->text);
    if (type == nullptr) {
      return Error(*dtype, absl::StrCat(tensor, " has dtype ", EscapeBytes(dtype->text),
                                        "; supported are ", TypeNames()));
    }
    SafetensorsFile::Entry entry;
    entry.type = type->type;
    MGC_ASSIGN_OR_RETURN(entry.shape, ReadSizes(*shape));
    std::vector<int64_t> range;
    MGC_ASSIGN_OR_RETURN(range, ReadSizes(*offsets));
    if (range.size() != 2) return Error(*offsets, absl::StrCat(tensor, " needs two offsets"));
    std::tie(entry.begin, entry.end) = std::make_tuple(range[0], range[1]);
    if (entry.begin > entry.end || entry.end - entry.begin != ByteCount(*type, entry.shape)) {
      return Error(*offsets, absl::StrCat(tensor, " of shape [", absl::StrJoin(entry.shape, ","),
                                          "] has offsets ", entry.begin, " to ", entry.end));
    }
    return entry;
  }

  absl::string_view file_;
};

// Every byte of the data belongs to exactly one tensor.
absl::Status CheckCoverage(const std::map<std::string, SafetensorsFile::Entry>& entries,
                           int64_t data_bytes, absl::string_view file) {
  std::vector<std::tuple<int64_t, int64_t, absl::string_view>> ranges;
  ranges.reserve(entries.size());
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.end, name);
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto& [begin, end, name] : ranges) {
    if (begin != at) {
      return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(file), ": tensor ",
                                                     EscapeBytes(name), " begins at byte ", begin,
                                                     " of the data, not at ", at));
    }
    at = end;
  }
  if (at != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(file), ": the tensors end at byte ",
                                                   at, " of the data, which has ", data_bytes));
  }
  return absl::OkStatus();
}

// The bytes of the header, of which the first kPrefixBytes of a file of `file_bytes` tell.
absl::StatusOr<int64_t> HeaderBytes(absl::string_view prefix, int64_t file_bytes,
                                    absl::string_view name) {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  if (prefix.size() >= kPrefixBytes) std::memcpy(&bytes, prefix.data(), kPrefixBytes);
  if (bytes > kMaxHeaderBytes || static_cast<int64_t>(bytes) + kPrefixBytes > file_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(name), " is no safetensors file, or cut off: ", file_bytes,
                     " bytes hold no whole header"));
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<SafetensorsHeader> ParseHeader(absl::string_view text, int64_t file_bytes,
                                              absl::string_view name) {
  if (!absl::StartsWith(text, "{")) {
    return absl::InvalidArgumentError(absl::StrCat(
        EscapeBytes(name), " is no safetensors file: its header does not begin with {"));
  }
  JsonValue root;
  MGC_ASSIGN_OR_RETURN(root, ParseJson(text, absl::StrCat(name, ": header")));
  SafetensorsHeader header;
  MGC_ASSIGN_OR_RETURN(header.entries, HeaderReader(name).Read(root));
  header.data_begin = kPrefixBytes + static_cast<int64_t>(text.size());
  MGC_RETURN_IF_ERROR(CheckCoverage(header.entries, file_bytes - header.data_begin, name));
  return header;
}

}  // namespace

absl::string_view NameOf(SafetensorsType type) { return InfoOf(type).name; }

absl::StatusOr<SafetensorsHeader> SafetensorsHeader::Read(const PositionalFile& file) {
  std::string prefix(static_cast<size_t>(std::min(kPrefixBytes, file.bytes())), '\0');
  MGC_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(prefix)));
  MGC_ASSIGN_OR_RETURN(const int64_t bytes, HeaderBytes(prefix, file.bytes(), file.path()));
  std::string text(static_cast<size_t>(bytes), '\0');
  MGC_RETURN_IF_ERROR(file.Read(kPrefixBytes, absl::MakeSpan(text)));
  return ParseHeader(text, file.bytes(), file.path());
}

SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const float> values) {
  return MakeView(std::move(name), SafetensorsType::kF32, std::move(shape), values);
}

SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const double> values) {
  return MakeView(std::move(name), SafetensorsType::kF64, std::move(shape), values);
}

SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const int64_t> values) {
  return MakeView(std::move(name), SafetensorsType::kI64, std::move(shape), values);
}

absl::StatusOr<SafetensorsLayout> SafetensorsLayout::Create(
    absl::Span<const SafetensorsSpec> tensors) {
  MGC_RETURN_IF_ERROR(CheckSpecs(tensors));
  SafetensorsLayout layout;
  layout.order_.resize(tensors.size());
  std::iota(layout.order_.begin(), layout.order_.end(), size_t{0});
  const auto key = [&](size_t place) {
    return std::make_tuple(&InfoOf(tensors[place].type), absl::string_view(tensors[place].name));
  };
  std::sort(layout.order_.begin(), layout.order_.end(),
            [&](size_t a, size_t b) { return key(a) < key(b); });
  layout.offsets_.resize(tensors.size());
  int64_t at = 0;
  for (size_t place : layout.order_) {
    layout.offsets_[place] = at;
    at += ByteCount(InfoOf(tensors[place].type), tensors[place].shape);
  }
  layout.header_ = MakeHeader(tensors, layout.order_, layout.offsets_);
  const int64_t begin = static_cast<int64_t>(layout.header_.size());
  if (begin > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the names of ", tensors.size(), " tensors take more than ", kMaxHeaderBytes, " bytes"));
  }
  for (int64_t& offset : layout.offsets_) offset += begin;
  layout.file_bytes_ = begin + at;
  return layout;
}

absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsView> tensors) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (SafetensorsView& tensor : tensors) {
    const int64_t bytes = ByteCount(InfoOf(tensor.type), tensor.shape);
    if (bytes != static_cast<int64_t>(tensor.bytes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", EscapeBytes(tensor.name), " of shape [",
                       absl::StrJoin(tensor.shape, ","), "] has ", tensor.bytes.size(), " bytes"));
    }
    specs.push_back({std::move(tensor.name), tensor.type, std::move(tensor.shape)});
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  std::vector<absl::string_view> pieces = {layout.header()};
  for (size_t place : layout.order()) pieces.push_back(tensors[place].bytes);
  return WriteFileAtomically(path, pieces);
}

SafetensorsFile::SafetensorsFile(std::string bytes, std::string name, SafetensorsHeader header)
    : bytes_(std::move(bytes)), name_(std::move(name)), header_(std::move(header)) {}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Read(const std::string& path) {
  std::string bytes;
  MGC_ASSIGN_OR_RETURN(bytes, ReadFile(path));
  return Parse(std::move(bytes), path);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(std::string bytes, absl::string_view name) {
  const auto file_bytes = static_cast<int64_t>(bytes.size());
  MGC_ASSIGN_OR_RETURN(const int64_t header_bytes, HeaderBytes(bytes, file_bytes, name));
  const absl::string_view text =
      absl::string_view(bytes).substr(kPrefixBytes, static_cast<size_t>(header_bytes));
  MGC_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseHeader(text, file_bytes, name));
  return SafetensorsFile(std::move(bytes), EscapeBytes(name), std::move(header));
}

template <typename T>
absl::StatusOr<std::vector<T>> SafetensorsFile::Values(const std::string& name,
                                                       SafetensorsType type) const {
  const auto found = entries().find(name);
  if (found == entries().end()) {
    return absl::NotFoundError(absl::StrCat(name_, " has no tensor ", EscapeBytes(name)));
  }
  const Entry& entry = found->second;
  if (entry.type != type) {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": tensor ", EscapeBytes(name), " is ",
                                                   InfoOf(entry.type).name, ", not ",
                                                   InfoOf(type).name));
  }
  std::vector<T> values((entry.end - entry.begin) / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes_.data() + header_.data_begin + entry.begin,
                entry.end - entry.begin);
  }
  return values;
}

absl::StatusOr<std::vector<float>> SafetensorsFile::Floats(const std::string& name) const {
  return Values<float>(name, SafetensorsType::kF32);
}

absl::StatusOr<std::vector<double>> SafetensorsFile::Doubles(const std::string& name) const {
  return Values<double>(name, SafetensorsType::kF64);
}

absl::StatusOr<std::vector<int64_t>> SafetensorsFile::Integers(const std::string& name) const {
  const auto found = entries().find(name);
  if (found == entries().end() || found->second.type != SafetensorsType::kI32) {
    return Values<int64_t>(name, SafetensorsType::kI64);
  }
  MGC_ASSIGN_OR_RETURN(const std::vector<int32_t> narrow,
                       Values<int32_t>(name, SafetensorsType::kI32));
  return std::vector<int64_t>(narrow.begin(), narrow.end());
}

}  // namespace mgc
