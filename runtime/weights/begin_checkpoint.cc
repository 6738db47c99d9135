#include "runtime/weights/begin_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/positional_file.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/types/tensor_type.h"
#include "runtime/data/safetensors.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/manifest.h"
#include "runtime/weights/strided.h"
#include "runtime/weights/weight_types.h"
#include "runtime/weights/write_in_turn.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 18;  // values

// Copies a parameter to `offset` of a checkpoint's file; its hash.
absl::StatusOr<uint64_t> Copy(const PlacedPart& from, int64_t offset, SharedFile& to) {
  const int64_t all = NumElements(from.part->shape);
  StridedReader reader(from, {{0, all}});
  std::vector<float> values;
  uint64_t hash = 0;
  for (int64_t at = 0; at < all; at += kAtOnce) {
    values.resize(static_cast<size_t>(std::min(all - at, kAtOnce)));
    MGC_RETURN_IF_ERROR(reader.Read(at, absl::MakeSpan(values)));
    MGC_RETURN_IF_ERROR(CheckFinite(values, "has values that are not finite"));
    hash += HashOfRun(at, values);
    const size_t bytes = values.size() * sizeof(float);
    MGC_RETURN_IF_ERROR(to.Write(offset + at * static_cast<int64_t>(sizeof(float)),
                                 {reinterpret_cast<const char*>(values.data()), bytes}));
  }
  return hash;
}

// Writes the file of all parameters; what lies where. `source`: what they are of.
absl::StatusOr<std::vector<StoredTensor>> WriteParameters(absl::Span<const PlacedPart> parts,
                                                          const std::string& source,
                                                          const std::string& path) {
  std::vector<SafetensorsSpec> specs;
  for (const PlacedPart& part : parts) {
    specs.push_back({part.part->parameter, SafetensorsType::kF32, part.part->shape});
  }
  std::vector<StoredTensor> stored;
  const auto copy = [&](size_t t, int64_t offset, SharedFile& to) {
    const absl::StatusOr<uint64_t> hash = Copy(parts[t], offset, to);
    if (hash.ok()) stored.push_back({specs[t].name, specs[t].shape, offset, *hash});
    return Annotate(hash.status(),
                    absl::StrCat(EscapeBytes(source), ": parameter ", EscapeBytes(specs[t].name)));
  };
  MGC_RETURN_IF_ERROR(WriteInTurn(path, specs, copy));
  return stored;
}

absl::StatusOr<int64_t> Begin(absl::Span<const PlacedPart> parts, const std::string& source,
                              const CheckpointDir& dir, const std::string& version) {
  MGC_ASSIGN_OR_RETURN(const std::string folder, dir.Begin(0));
  Manifest manifest;
  manifest.state.version = version;
  absl::StatusOr<std::vector<StoredTensor>> stored =
      WriteParameters(parts, source, absl::StrCat(folder, "/", kParametersFile));
  absl::Status status = stored.status();
  if (status.ok()) {
    manifest.files.push_back({kParametersFile, *std::move(stored)});
    status = dir.Publish(folder, manifest);
  }
  if (!status.ok()) {
    dir.Abandon(folder);
    return status;
  }
  int64_t elements = 0;
  for (const PlacedPart& part : parts) elements += NumElements(part.part->shape);
  return elements;
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

absl::StatusOr<int64_t> BeginWithModel(const ModelFiles& files, const CheckpointDir& dir,
                                       const std::string& version) {
  return Begin(files.parts(), files.dir(), dir, version);
}

absl::StatusOr<int64_t> BeginWithFile(const std::string& path, const CheckpointDir& dir,
                                      const std::string& version) {
  MGC_ASSIGN_OR_RETURN(const PositionalFile file, PositionalFile::Open(path));
  MGC_ASSIGN_OR_RETURN(const SafetensorsHeader header, SafetensorsHeader::Read(file));
  MGC_RETURN_IF_ERROR(CheckTypes(header, path));
  std::vector<ParameterPart> parts;
  std::vector<PlacedPart> placed;
  parts.reserve(header.entries.size());
  for (const auto& [name, entry] : header.entries) {
    parts.push_back(AsStored(name, entry.shape));
    placed.push_back({&file, header.data_begin + entry.begin, entry.type, &parts.back()});
  }
  return Begin(placed, path, dir, version);
}

}  // namespace mgc
