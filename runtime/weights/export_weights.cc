#include "runtime/weights/export_weights.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/positional_file.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/types/tensor_type.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/manifest.h"
#include "runtime/state/tensor_file.h"
#include "runtime/state/tensor_shapes.h"
#include "runtime/weights/low_rank.h"
#include "runtime/weights/strided.h"
#include "runtime/weights/weight_types.h"
#include "runtime/weights/write_in_turn.h"

namespace mgc {
namespace {

constexpr int64_t kPanelValues = int64_t{1} << 22;
constexpr int64_t kAtOnce = int64_t{1} << 18;  // values

absl::StatusOr<StoredFile> StoredParameters(const std::string& folder) {
  MGC_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
  for (StoredFile& file : manifest.files) {
    if (file.name == kParametersFile) return std::move(file);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeBytes(folder), " is a checkpoint without ", kParametersFile));
}

using StoredByName = std::map<std::string, const StoredTensor*>;

TensorShapes ShapesOf(const WeightMap& map) {
  TensorShapes shapes;
  for (const FileTensor& tensor : map.tensors) {
    for (const ParameterPart& part : tensor.parts) shapes[part.parameter] = part.shape;
  }
  return shapes;
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

// Copies a parameter out of a checkpoint's file into its part of a tensor. `term` is added to it,
// where there is one.
absl::Status CopyPart(const PositionalFile& from, const StoredTensor& stored,
                      const ParameterPart& part, const LowRankProduct* term, const Target& to) {
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
    if (term != nullptr) term->AddTo(at, absl::MakeSpan(values));
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

// Of a checkpoint.
class Exporter {
 public:
  static absl::StatusOr<Exporter> Open(const std::string& folder) {
    MGC_ASSIGN_OR_RETURN(StoredFile stored, StoredParameters(folder));
    MGC_ASSIGN_OR_RETURN(PositionalFile file,
                         PositionalFile::Open(absl::StrCat(folder, "/", stored.name)));
    return Exporter(std::move(file), std::move(stored.tensors));
  }

  absl::Span<const StoredTensor> stored() const { return stored_; }
  // Shapes of all tensors that `is_wanted` is of.
  TensorShapes Shapes(absl::FunctionRef<bool(const std::string&)> is_wanted) const {
    TensorShapes shapes = ShapesOf(stored_);
    for (auto it = shapes.begin(); it != shapes.end();) {
      it = is_wanted(it->first) ? std::next(it) : shapes.erase(it);
    }
    return shapes;
  }

  // Writes these of the map's tensors, of types and with terms that `options` has for all.
  absl::Status Write(const WeightMap& map, const ExportOptions& options,
                     absl::Span<const size_t> tensors, const std::string& path) const {
    StoredByName stored;
    for (const StoredTensor& tensor : stored_) stored[tensor.name] = &tensor;
    std::vector<SafetensorsSpec> specs;
    for (size_t t : tensors) {
      specs.push_back({map.tensors[t].name, options.types[t], map.tensors[t].shape});
    }
    const auto copy = [&](size_t i, int64_t offset, SharedFile& file) -> absl::Status {
      const Target to{file, offset, specs[i].type};
      for (const ParameterPart& part : map.tensors[tensors[i]].parts) {
        MGC_RETURN_IF_ERROR(Annotate(CopySum(stored, options.terms, part, to),
                                     absl::StrCat("parameter ", EscapeBytes(part.parameter))));
      }
      return absl::OkStatus();
    };
    return WriteInTurn(path, specs, copy);
  }

  absl::Status WriteAll(const WeightMap& map, SafetensorsType type, const std::string& path) const {
    ExportOptions options;
    options.types.assign(map.tensors.size(), type);
    std::vector<size_t> all(map.tensors.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return Write(map, options, all, path);
  }

 private:
  // A part with its term, if it has one.
  absl::Status CopySum(const StoredByName& stored, absl::Span<const LowRankTerm> terms,
                       const ParameterPart& part, const Target& to) const {
    const StoredTensor& parameter = *stored.at(part.parameter);
    for (const LowRankTerm& term : terms) {
      if (term.parameter != part.parameter) continue;
      const auto a = stored.find(term.a), b = stored.find(term.b);
      if (a == stored.end() || b == stored.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the checkpoint has no ", a == stored.end() ? term.a : term.b));
      }
      MGC_ASSIGN_OR_RETURN(const LowRankProduct product,
                           LowRankProduct::Read(from_, *a->second, *b->second, term.scale));
      if (product.elements() != NumElements(parameter.shape)) {
        return absl::FailedPreconditionError(
            absl::StrCat("is ", ShapeText(parameter.shape), ", and ", term.a, " times ", term.b,
                         " has ", product.elements(), " elements"));
      }
      return CopyPart(from_, parameter, part, &product, to);
    }
    return CopyPart(from_, parameter, part, nullptr, to);
  }

  Exporter(PositionalFile from, std::vector<StoredTensor> stored)
      : from_(std::move(from)), stored_(std::move(stored)) {}

  PositionalFile from_;
  std::vector<StoredTensor> stored_;
};

int64_t ElementsOf(const WeightMap& map) {
  int64_t elements = 0;
  for (const FileTensor& tensor : map.tensors) elements += NumElements(tensor.shape);
  return elements;
}

std::vector<std::string> NamesOf(size_t shards) {
  if (shards == 1) return {kWeightsFile};
  std::vector<std::string> names;
  for (size_t s = 0; s < shards; ++s) {
    names.push_back(absl::StrFormat("model-%05d-of-%05d.safetensors", s + 1, shards));
  }
  return names;
}

}  // namespace

absl::StatusOr<int64_t> ExportWeights(const std::string& folder, const WeightMap& map,
                                      const ExportOptions& options, const std::string& dir) {
  MGC_ASSIGN_OR_RETURN(const Exporter exporter, Exporter::Open(folder));
  const TensorShapes there =
      exporter.Shapes([&](const std::string& name) { return options.left_out.count(name) == 0; });
  MGC_RETURN_IF_ERROR(CheckSameTensors(there, folder, ShapesOf(map), "the configuration"));
  const std::vector<Shard> shards = ShardsOf(map, options);
  const std::vector<std::string> names = NamesOf(shards.size());
  for (size_t s = 0; s < shards.size(); ++s) {
    MGC_RETURN_IF_ERROR(
        exporter.Write(map, options, shards[s].tensors, absl::StrCat(dir, "/", names[s])));
  }
  if (shards.size() > 1) {
    MGC_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(dir, "/", kWeightsIndex), IndexText(map, shards, names)));
  }
  return ElementsOf(map);
}

absl::StatusOr<int64_t> ExportPart(const std::string& folder, const WeightMap& map,
                                   SafetensorsType type, const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const Exporter exporter, Exporter::Open(folder));
  const TensorShapes wanted = ShapesOf(map);
  const TensorShapes there =
      exporter.Shapes([&](const std::string& name) { return wanted.count(name) != 0; });
  MGC_RETURN_IF_ERROR(CheckSameTensors(there, folder, wanted, "the configuration"));
  MGC_RETURN_IF_ERROR(exporter.WriteAll(map, type, path));
  return ElementsOf(map);
}

absl::StatusOr<int64_t> ExportFile(const std::string& folder, SafetensorsType type,
                                   const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const Exporter exporter, Exporter::Open(folder));
  WeightMap map;
  for (const StoredTensor& tensor : exporter.stored()) {
    map.tensors.push_back({tensor.name, tensor.shape, {AsStored(tensor.name, tensor.shape)}});
  }
  MGC_RETURN_IF_ERROR(exporter.WriteAll(map, type, path));
  return ElementsOf(map);
}

}  // namespace mgc
