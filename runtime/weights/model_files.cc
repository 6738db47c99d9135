#include "runtime/weights/model_files.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"
#include "runtime/state/tensor_shapes.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

constexpr int64_t kMostIndexBytes = int64_t{1} << 28;

std::string In(const std::string& dir, absl::string_view name) {
  return absl::StrCat(dir, "/", name);
}

// Which file has which tensor, as an index says.
using FileOfTensor = std::map<std::string, std::string>;

absl::StatusOr<FileOfTensor> ReadIndex(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostIndexBytes));
  MGC_ASSIGN_OR_RETURN(const JsonValue root, ParseJson(text, path));
  FileDiagnostics problems(path);
  const JsonValue* const map = root.Find("weight_map");
  if (map == nullptr || map->kind != JsonValue::Kind::kObject) {
    problems.Add(root.place(), "", "has no object `weight_map`");
    return problems.ToStatus();
  }
  FileOfTensor files;
  for (const JsonMember& member : map->members) {
    const std::string& name = member.value.text;
    // A file beside the index, and nowhere else.
    if (member.value.kind != JsonValue::Kind::kString || name.empty() ||
        absl::StrContains(name, '/') || absl::StrContains(name, '\0')) {
      problems.Add(member.value.place(), "",
                   absl::StrCat("tensor ", EscapeBytes(member.key),
                                " is said to be in no file of this directory"));
    }
    files.emplace(member.key, name);
  }
  MGC_RETURN_IF_ERROR(problems.ToStatus());
  return files;
}

}  // namespace

// Finds the map's tensors among those of files.
class ModelFiles::Matcher {
 public:
  explicit Matcher(ModelFiles* files) : files_(*files), map_(files->map_) {
    files_.placed_.resize(map_.tensors.size());
    for (size_t t = 0; t < map_.tensors.size(); ++t) by_name_[map_.tensors[t].name] = t;
  }

  // Those of one file. `index`: what is said of all files, or null.
  void Take(const PositionalFile& file, const std::string& name, const SafetensorsHeader& header,
            const FileOfTensor* index) {
    for (const auto& [tensor, entry] : header.entries) {
      if (index != nullptr) {
        const auto said = index->find(tensor);
        if (said == index->end() || said->second != name) {
          Problem(name, "has tensor ", EscapeBytes(tensor), ", which the index does not say");
          continue;
        }
        ++indexed_;
      }
      TakeTensor(file, name, header.data_begin, tensor, entry);
    }
  }

  absl::Status Finish(const FileOfTensor* index) {
    if (index != nullptr && indexed_ < index->size() && problems_.empty()) {
      Problem(kWeightsIndex, "names ", index->size() - indexed_, " tensors that its files lack");
    }
    for (size_t t = 0; t < map_.tensors.size(); ++t) {
      if (files_.placed_[t].file == nullptr && failed_.count(t) == 0) {
        Problem("", "tensor ", map_.tensors[t].name, " is missing, of shape ",
                ShapeText(map_.tensors[t].shape));
      }
    }
    return problems_.ToStatus(absl::StatusCode::kInvalidArgument);
  }

 private:
  template <class... Text>
  void Problem(absl::string_view file, const Text&... text) {
    problems_.Add("", EscapeBytes(file.empty() ? files_.dir_ : In(files_.dir_, file)),
                  absl::StrCat(text...));
  }

  // The map's name of a tensor: with the prefix, and a new ending.
  std::map<std::string, size_t>::const_iterator Find(std::string name) const {
    for (const OldEnding& ending : map_.old_endings) {
      if (absl::EndsWith(name, ending.old)) {
        name = absl::StrCat(absl::StripSuffix(name, ending.old), ending.now);
        break;
      }
    }
    const auto found = by_name_.find(name);
    return found != by_name_.end() ? found : by_name_.find(map_.prefix + name);
  }

  void TakeTensor(const PositionalFile& file, const std::string& name, int64_t data_begin,
                  const std::string& tensor, const SafetensorsHeader::Entry& entry) {
    const auto found = Find(tensor);
    if (found == by_name_.end()) return Ignore(tensor);
    const size_t t = found->second;
    const FileTensor& wanted = map_.tensors[t];
    Placed& placed = files_.placed_[t];
    if (placed.file != nullptr) {
      Problem(name, "has tensor ", EscapeBytes(tensor), ", and ", wanted.name, " is there already");
    } else if (entry.shape != wanted.shape) {
      Problem(name, "tensor ", EscapeBytes(tensor), " has shape ", ShapeText(entry.shape),
              "; the configuration makes it ", ShapeText(wanted.shape));
    } else if (!IsOfWeights(entry.type)) {
      Problem(name, "tensor ", EscapeBytes(tensor), " is of ", NameOf(entry.type),
              "; weights are of F32, BF16 or F16");
    } else {
      placed = {&file, data_begin + entry.begin, entry.type};
      return;
    }
    failed_.insert(t);
  }

  void Ignore(const std::string& tensor) {
    std::string reason = "the model has no such parameter";
    for (const IgnoredTensors& rule : map_.ignored) {
      if (absl::EndsWith(tensor, rule.ending)) reason = rule.reason;
    }
    files_.ignored_.emplace_back(tensor, reason);
  }

  ModelFiles& files_;
  const WeightMap& map_;
  std::map<std::string, size_t> by_name_;
  std::set<size_t> failed_;
  size_t indexed_ = 0;
  Diagnostics problems_;
};

absl::StatusOr<ModelFiles> ModelFiles::Open(const std::string& dir, WeightMap map,
                                            const std::string& name) {
  ModelFiles files;
  files.dir_ = dir;
  files.map_ = std::move(map);
  absl::StatusOr<FileOfTensor> index = ReadIndex(In(dir, kWeightsIndex));
  if (!index.ok() && !absl::IsNotFound(index.status())) return index.status();
  std::set<std::string> names;
  if (index.ok()) {
    for (const auto& [tensor, file] : *index) names.insert(file);
  } else {
    names.insert(name);
  }
  const FileOfTensor* const said = index.ok() ? &*index : nullptr;
  Matcher matcher(&files);
  for (const std::string& part : names) {
    MGC_ASSIGN_OR_RETURN(PositionalFile file, PositionalFile::Open(In(dir, part)));
    files.files_.push_back(std::make_unique<PositionalFile>(std::move(file)));
    const PositionalFile& opened = *files.files_.back();
    MGC_ASSIGN_OR_RETURN(const SafetensorsHeader header, SafetensorsHeader::Read(opened));
    matcher.Take(opened, part, header, said);
  }
  MGC_RETURN_IF_ERROR(matcher.Finish(said));
  files.ListParts();
  return files;
}

void ModelFiles::ListParts() {
  parts_.clear();
  for (size_t t = 0; t < map_.tensors.size(); ++t) {
    const Placed& placed = placed_[t];
    for (const ParameterPart& part : map_.tensors[t].parts) {
      parts_.push_back({placed.file, placed.offset, placed.type, &part});
    }
  }
}

void ModelFiles::Add(ModelFiles other) {
  std::move(other.files_.begin(), other.files_.end(), std::back_inserter(files_));
  placed_.insert(placed_.end(), other.placed_.begin(), other.placed_.end());
  std::move(other.map_.tensors.begin(), other.map_.tensors.end(), std::back_inserter(map_.tensors));
  std::move(other.ignored_.begin(), other.ignored_.end(), std::back_inserter(ignored_));
  ListParts();
}

std::vector<std::string> ModelFiles::Report() const {
  std::vector<std::string> lines = {absl::StrCat(EscapeBytes(dir_), ": ", placed_.size(),
                                                 " tensors make ", parts_.size(), " parameters")};
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, reason] : ignored_) by_reason[reason].push_back(EscapeBytes(name));
  constexpr size_t kShown = 3;
  for (const auto& [reason, names] : by_reason) {
    const size_t shown = std::min(names.size(), kShown);
    lines.push_back(absl::StrCat(
        EscapeBytes(dir_), ": ignored, ", reason, ": ",
        absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
        names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : ""));
  }
  return lines;
}

std::string ModelFiles::Identity() const {
  std::string text;
  for (size_t t = 0; t < placed_.size(); ++t) {
    const Placed& placed = placed_[t];
    absl::StrAppend(&text, map_.tensors[t].name, " ", placed.file->path(), " ",
                    placed.file->bytes(), " ", placed.offset, " ", NameOf(placed.type), "\n");
  }
  return text;
}

}  // namespace mgc
