#include "runtime/state/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/positional_file.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "graph/types/tensor_type.h"
#include "runtime/state/checkpoint.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 18;  // values

int64_t BytesOf(SafetensorsType type) { return type == SafetensorsType::kF32 ? 4 : 2; }

template <class Narrow, Narrow (*kRound)(float)>
std::string Rounded(absl::Span<const float> values) {
  std::string bytes(values.size() * sizeof(Narrow), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const Narrow value = kRound(values[i]);
    std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
  }
  return bytes;
}

std::string Encode(absl::Span<const float> values, SafetensorsType type) {
  if (type == SafetensorsType::kBF16) return Rounded<Bfloat16, ToBfloat16>(values);
  if (type == SafetensorsType::kF16) return Rounded<Float16, ToFloat16>(values);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

template <class Narrow>
void Widen(absl::string_view bytes, absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Narrow value;
    std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
    values[i] = ToFloat(value);
  }
}

void Decode(absl::string_view bytes, SafetensorsType type, absl::Span<float> values) {
  if (type == SafetensorsType::kBF16) return Widen<Bfloat16>(bytes, values);
  if (type == SafetensorsType::kF16) return Widen<Float16>(bytes, values);
  std::memcpy(values.data(), bytes.data(), bytes.size());
}

// A tensor of a file, by the file that holds it.
struct TensorSource {
  const PositionalFile* file = nullptr;
  int64_t offset = 0;
  SafetensorsType type = SafetensorsType::kF32;
  int64_t elements = 0;
};

// Copies a tensor to `offset` of a file, in another type. `whole` is the hash of its values.
absl::Status Copy(const TensorSource& from, SafetensorsType type, int64_t offset, SharedFile& to,
                  uint64_t* whole) {
  std::vector<float> values;
  std::string bytes;
  *whole = 0;
  for (int64_t at = 0; at < from.elements; at += kAtOnce) {
    const int64_t count = std::min(from.elements - at, kAtOnce);
    bytes.resize(static_cast<size_t>(count * BytesOf(from.type)));
    values.resize(static_cast<size_t>(count));
    MGC_RETURN_IF_ERROR(
        from.file->Read(from.offset + at * BytesOf(from.type), absl::MakeSpan(bytes)));
    Decode(bytes, from.type, absl::MakeSpan(values));
    *whole += HashOfRun(at, values);
    const std::string written = Encode(values, type);
    Decode(written, type, absl::MakeSpan(values));
    for (float value : values) {
      if (!std::isfinite(value)) {
        return absl::OutOfRangeError(
            absl::StrCat("has values that ", NameOf(type), " cannot hold"));
      }
    }
    MGC_RETURN_IF_ERROR(to.Write(offset + at * BytesOf(type), written));
  }
  return absl::OkStatus();
}

// What `copy` puts into the place of each tensor of a file of one type. `copy` is told the tensor's
// number and where it begins.
absl::Status WriteFile(const std::string& path, const SafetensorsLayout& layout, size_t tensors,
                       absl::FunctionRef<absl::Status(size_t, int64_t, SharedFile&)> copy) {
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file,
                       SharedFile::Create(path, layout.file_bytes()));
  MGC_RETURN_IF_ERROR(file->Write(0, layout.header()));
  for (size_t t = 0; t < tensors; ++t) {
    MGC_RETURN_IF_ERROR(copy(t, layout.OffsetOf(t), *file));
  }
  MGC_RETURN_IF_ERROR(file->Sync());
  return file->Publish();
}

absl::StatusOr<StoredFile> ParametersOf(const std::string& folder) {
  MGC_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
  for (StoredFile& file : manifest.files) {
    if (file.name == kParametersFile) return std::move(file);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeBytes(folder), " is a checkpoint without ", kParametersFile));
}

bool IsOfWeights(SafetensorsType type) {
  return type == SafetensorsType::kF32 || type == SafetensorsType::kBF16 ||
         type == SafetensorsType::kF16;
}

absl::Status CheckTypes(const SafetensorsHeader& header, const std::string& path) {
  Diagnostics problems;
  for (const auto& [name, entry] : header.entries) {
    if (IsOfWeights(entry.type)) continue;
    problems.Add("", EscapeBytes(path),
                 absl::StrCat("tensor ", EscapeBytes(name), " is of ", NameOf(entry.type),
                              "; weights are of F32, BF16 or F16"));
  }
  return problems.ToStatus(absl::StatusCode::kInvalidArgument);
}

}  // namespace

absl::StatusOr<int64_t> WriteWeights(const std::string& folder, const std::string& path,
                                     SafetensorsType type) {
  MGC_ASSIGN_OR_RETURN(const StoredFile stored, ParametersOf(folder));
  MGC_ASSIGN_OR_RETURN(const PositionalFile from,
                       PositionalFile::Open(absl::StrCat(folder, "/", stored.name)));
  std::vector<SafetensorsSpec> specs;
  int64_t elements = 0;
  for (const StoredTensor& tensor : stored.tensors) {
    specs.push_back({tensor.name, type, tensor.shape});
    elements += NumElements(tensor.shape);
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  const auto copy = [&](size_t t, int64_t offset, SharedFile& to) -> absl::Status {
    const StoredTensor& tensor = stored.tensors[t];
    const TensorSource source{&from, tensor.offset, SafetensorsType::kF32,
                              NumElements(tensor.shape)};
    uint64_t hash = 0;
    MGC_RETURN_IF_ERROR(Annotate(Copy(source, type, offset, to, &hash),
                                 absl::StrCat("tensor ", EscapeBytes(tensor.name))));
    return CheckHash(from.path(), tensor, hash);
  };
  MGC_RETURN_IF_ERROR(WriteFile(path, layout, specs.size(), copy));
  return elements;
}

absl::StatusOr<int64_t> ReadWeights(const std::string& path, const CheckpointDir& dir,
                                    const std::string& version) {
  MGC_ASSIGN_OR_RETURN(const PositionalFile from, PositionalFile::Open(path));
  MGC_ASSIGN_OR_RETURN(const SafetensorsHeader header, SafetensorsHeader::Read(from));
  MGC_RETURN_IF_ERROR(CheckTypes(header, path));
  std::vector<SafetensorsSpec> specs;
  std::vector<TensorSource> sources;
  int64_t elements = 0;
  for (const auto& [name, entry] : header.entries) {
    specs.push_back({name, SafetensorsType::kF32, entry.shape});
    sources.push_back(
        {&from, header.data_begin + entry.begin, entry.type, NumElements(entry.shape)});
    elements += sources.back().elements;
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  Manifest manifest;
  manifest.state.version = version;
  manifest.files.push_back({kParametersFile, {}});
  std::vector<StoredTensor>& stored = manifest.files[0].tensors;
  MGC_ASSIGN_OR_RETURN(const std::string folder, dir.Begin(0));
  const auto copy = [&](size_t t, int64_t offset, SharedFile& to) {
    stored.push_back({specs[t].name, specs[t].shape, offset, 0});
    return Annotate(Copy(sources[t], SafetensorsType::kF32, offset, to, &stored.back().hash),
                    absl::StrCat(EscapeBytes(path), ": tensor ", EscapeBytes(specs[t].name)));
  };
  absl::Status status =
      WriteFile(absl::StrCat(folder, "/", kParametersFile), layout, specs.size(), copy);
  if (status.ok()) status = dir.Publish(folder, manifest);
  if (!status.ok()) {
    dir.Abandon(folder);
    return status;
  }
  return elements;
}

}  // namespace mgc
