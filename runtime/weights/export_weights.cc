#include "runtime/weights/export_weights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/positional_file.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/types/tensor_type.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/manifest.h"
#include "runtime/state/tensor_file.h"
#include "runtime/weights/strided.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

constexpr int64_t kPanelValues = int64_t{1} << 22;
constexpr int64_t kAtOnce = int64_t{1} << 18;  // values

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::StatusOr<StoredFile> StoredParameters(const std::string& folder) {
  MGC_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
  for (StoredFile& file : manifest.files) {
    if (file.name == kParametersFile) return std::move(file);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeBytes(folder), " is a checkpoint without ", kParametersFile));
}

using StoredByName = std::map<std::string, const StoredTensor*>;

absl::Status CheckSame(const WeightMap& map, StoredByName stored, const std::string& path) {
  Diagnostics problems;
  const auto add = [&](const auto&... text) {
    problems.Add("", EscapeBytes(path), absl::StrCat(text...));
  };
  for (const FileTensor& tensor : map.tensors) {
    for (const ParameterPart& part : tensor.parts) {
      const auto found = stored.find(part.parameter);
      if (found == stored.end()) {
        add("has no parameter ", part.parameter, ", which the configuration asks for");
        continue;
      }
      if (found->second->shape != part.shape) {
        add("parameter ", part.parameter, " has shape ", ShapeText(found->second->shape),
            "; the configuration makes it ", ShapeText(part.shape));
      }
      stored.erase(found);
    }
  }
  for (const auto& [name, tensor] : stored) {
    add("parameter ", EscapeBytes(name), " is none of the configuration's");
  }
  return problems.ToStatus(absl::StatusCode::kFailedPrecondition);
}

// A tensor of a file that is being written.
struct Target {
  SharedFile& file;
  int64_t offset = 0;
  SafetensorsType type = SafetensorsType::kF32;
};

absl::Status WriteRun(const Target& to, int64_t place, absl::Span<float> values) {
  const std::string bytes = Encode(values, to.type);
  Decode(bytes, to.type, values);
  MGC_RETURN_IF_ERROR(
      CheckFinite(values, absl::StrCat("has values that ", NameOf(to.type), " cannot hold")));
  return to.file.Write(to.offset + place * BytesOf(to.type), bytes);
}

// Puts the values of a panel, row by row, to their places.
absl::Status WritePanel(const StridedGrid& grid, const Panel& panel, absl::Span<const float> values,
                        const Target& to) {
  const int64_t width = panel.width();
  std::vector<float> run;  // of columns that meet in the file
  int64_t begin = 0;
  const auto flush = [&]() -> absl::Status {
    if (!run.empty()) MGC_RETURN_IF_ERROR(WriteRun(to, begin, absl::MakeSpan(run)));
    run.clear();
    return absl::OkStatus();
  };
  MGC_RETURN_IF_ERROR(ForEachFileRun(
      grid, panel, [&](int64_t place, int64_t column, int64_t count) -> absl::Status {
        const auto known = static_cast<int64_t>(run.size());
        if (place != begin + known || known + count > kAtOnce) {
          MGC_RETURN_IF_ERROR(flush());
          begin = place;
        }
        const float* from = &values[static_cast<size_t>(column - panel.left)];
        for (int64_t row = 0; row < count; ++row, from += width) run.push_back(*from);
        return absl::OkStatus();
      }));
  return flush();
}

// Copies a parameter out of a checkpoint's file into its part of a tensor.
absl::Status CopyPart(const PositionalFile& from, const StoredTensor& stored,
                      const ParameterPart& part, const Target& to) {
  const StridedGrid grid(part.view);
  const ElementRange whole = {0, NumElements(part.shape)};
  uint64_t hash = 0;
  int64_t at = 0;
  std::vector<float> values;
  for (const Panel& panel : PanelsOf(grid, {&whole, 1}, kPanelValues)) {
    values.resize(static_cast<size_t>(panel.values()));
    const size_t bytes = values.size() * sizeof(float);
    MGC_RETURN_IF_ERROR(from.Read(stored.offset + at * static_cast<int64_t>(sizeof(float)),
                                  {reinterpret_cast<char*>(values.data()), bytes}));
    hash += HashOfRun(at, values);
    at += panel.values();
    if (part.added != 0) {
      for (float& value : values) value -= part.added;
    }
    MGC_RETURN_IF_ERROR(WritePanel(grid, panel, values, to));
  }
  return CheckHash(from.path(), stored, hash);
}

// Which of a map's tensors go into which file.
struct Shard {
  std::vector<size_t> tensors;
  int64_t bytes = 0;
};

std::vector<Shard> ShardsOf(const WeightMap& map, const ExportOptions& options) {
  std::vector<Shard> shards(1);
  for (size_t t = 0; t < map.tensors.size(); ++t) {
    const int64_t bytes = NumElements(map.tensors[t].shape) * BytesOf(options.types[t]);
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > options.shard_bytes) {
      shards.emplace_back();
    }
    shards.back().tensors.push_back(t);
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string IndexText(const WeightMap& map, absl::Span<const Shard> shards,
                      absl::Span<const std::string> names) {
  int64_t total = 0;
  std::map<std::string, std::string> files;
  for (size_t s = 0; s < shards.size(); ++s) {
    total += shards[s].bytes;
    for (size_t t : shards[s].tensors) files[map.tensors[t].name] = names[s];
  }
  JsonWriter json(JsonStyle::kSpaced);
  json.BeginObject().Key("metadata").BeginObject().Integer("total_size", total).EndObject();
  json.Key("weight_map").BeginObject();
  for (const auto& [tensor, file] : files) json.String(tensor, file);
  return std::move(json.EndObject().EndObject()).Text();
}

class Exporter {
 public:
  Exporter(const PositionalFile& from, const StoredByName& stored, const WeightMap& map,
           const ExportOptions& options)
      : from_(from), stored_(stored), map_(map), options_(options) {}

  absl::Status Write(const Shard& shard, const std::string& path) const {
    std::vector<SafetensorsSpec> specs;
    for (size_t t : shard.tensors) {
      specs.push_back({map_.tensors[t].name, options_.types[t], map_.tensors[t].shape});
    }
    MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
    MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file,
                         SharedFile::Create(path, layout.file_bytes()));
    MGC_RETURN_IF_ERROR(file->Write(0, layout.header()));
    for (size_t i = 0; i < specs.size(); ++i) {
      const Target to{*file, layout.OffsetOf(i), specs[i].type};
      for (const ParameterPart& part : map_.tensors[shard.tensors[i]].parts) {
        MGC_RETURN_IF_ERROR(Annotate(CopyPart(from_, *stored_.at(part.parameter), part, to),
                                     absl::StrCat("parameter ", part.parameter)));
      }
      file->BeginSync();
    }
    MGC_RETURN_IF_ERROR(file->Sync());
    return file->Publish();
  }

 private:
  const PositionalFile& from_;
  const StoredByName& stored_;
  const WeightMap& map_;
  const ExportOptions& options_;
};

}  // namespace

absl::StatusOr<int64_t> ExportWeights(const std::string& folder, const WeightMap& map,
                                      const ExportOptions& options, const std::string& dir) {
  MGC_ASSIGN_OR_RETURN(const StoredFile file, StoredParameters(folder));
  StoredByName stored;
  for (const StoredTensor& tensor : file.tensors) stored[tensor.name] = &tensor;
  MGC_RETURN_IF_ERROR(CheckSame(map, stored, folder));
  MGC_ASSIGN_OR_RETURN(const PositionalFile from,
                       PositionalFile::Open(absl::StrCat(folder, "/", file.name)));
  const Exporter exporter(from, stored, map, options);
  const std::vector<Shard> shards = ShardsOf(map, options);
  std::vector<std::string> names = {kWeightsFile};
  if (shards.size() > 1) {
    names.clear();
    for (size_t s = 0; s < shards.size(); ++s) {
      names.push_back(absl::StrFormat("model-%05d-of-%05d.safetensors", s + 1, shards.size()));
    }
  }
  for (size_t s = 0; s < shards.size(); ++s) {
    MGC_RETURN_IF_ERROR(exporter.Write(shards[s], absl::StrCat(dir, "/", names[s])));
  }
  if (shards.size() > 1) {
    MGC_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(dir, "/", kWeightsIndex), IndexText(map, shards, names)));
  }
  int64_t elements = 0;
  for (const StoredTensor& tensor : file.tensors) elements += NumElements(tensor.shape);
  return elements;
}

namespace {

// Copies a parameter to `offset` of a checkpoint's file; its hash.
absl::StatusOr<uint64_t> CopyToCheckpoint(const PlacedPart& from, int64_t offset, SharedFile& to) {
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

// Writes the file of all parameters; what lies where.
absl::StatusOr<std::vector<StoredTensor>> WriteParameters(const ModelFiles& files,
                                                          const std::string& path) {
  std::vector<SafetensorsSpec> specs;
  for (const PlacedPart& part : files.parts()) {
    specs.push_back({part.part->parameter, SafetensorsType::kF32, part.part->shape});
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file,
                       SharedFile::Create(path, layout.file_bytes()));
  MGC_RETURN_IF_ERROR(file->Write(0, layout.header()));
  std::vector<StoredTensor> stored;
  for (size_t t : layout.order()) {
    const absl::StatusOr<uint64_t> hash =
        CopyToCheckpoint(files.parts()[t], layout.OffsetOf(t), *file);
    MGC_RETURN_IF_ERROR(Annotate(
        hash.status(), absl::StrCat(EscapeBytes(files.dir()), ": parameter ", specs[t].name)));
    stored.push_back({specs[t].name, specs[t].shape, layout.OffsetOf(t), *hash});
  }
  MGC_RETURN_IF_ERROR(file->Sync());
  MGC_RETURN_IF_ERROR(file->Publish());
  return stored;
}

}  // namespace

absl::StatusOr<int64_t> ImportCheckpoint(const ModelFiles& files, const CheckpointDir& dir,
                                         const std::string& version) {
  MGC_ASSIGN_OR_RETURN(const std::string folder, dir.Begin(0));
  Manifest manifest;
  manifest.state.version = version;
  absl::StatusOr<std::vector<StoredTensor>> stored =
      WriteParameters(files, absl::StrCat(folder, "/", kParametersFile));
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
  for (const StoredTensor& tensor : manifest.files[0].tensors) {
    elements += NumElements(tensor.shape);
  }
  return elements;
}

}  // namespace mgc
