#include "tools/views/groups.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

constexpr size_t kLongestList = 80;  // characters

using RankGroups = std::vector<std::vector<int64_t>>;

std::string ListText(const RankGroups& groups) {
  return absl::StrJoin(groups, " ", [](std::string* out, const std::vector<int64_t>& group) {
    absl::StrAppend(out, "[", absl::StrJoin(group, " "), "]");
  });
}

// Groups that are written as one text.
struct GroupFold {
  std::string text;
  RankGroups groups;
};

// Whether `later` is `earlier` with all ranks `shift` higher.
bool IsShifted(const RankGroups& earlier, const RankGroups& later, int64_t shift) {
  if (earlier.size() != later.size()) return false;
  for (size_t g = 0; g < earlier.size(); ++g) {
    if (earlier[g].size() != later[g].size()) return false;
    for (size_t i = 0; i < earlier[g].size(); ++i) {
      if (later[g][i] != earlier[g][i] + shift) return false;
    }
  }
  return true;
}

int64_t ShiftBetween(const GroupFold& earlier, const GroupFold& later) {
  return later.groups[0][0] - earlier.groups[0][0];
}

// Joins neighbours that follow each other at one distance.
std::vector<GroupFold> JoinShifted(const std::vector<GroupFold>& folds) {
  std::vector<GroupFold> joined;
  for (size_t first = 0; first < folds.size();) {
    size_t end = first + 1;
    const int64_t shift = end < folds.size() ? ShiftBetween(folds[first], folds[end]) : 0;
    while (end < folds.size() && IsShifted(folds[end - 1].groups, folds[end].groups, shift)) ++end;
    GroupFold fold = folds[first];
    if (end > first + 1) {
      fold.text = absl::StrCat(end - first, " x (", fold.text, ") +", shift);
    }
    for (size_t i = first + 1; i < end; ++i) {
      fold.groups.insert(fold.groups.end(), folds[i].groups.begin(), folds[i].groups.end());
    }
    joined.push_back(std::move(fold));
    first = end;
  }
  return joined;
}

std::string FoldedText(const RankGroups& groups) {
  std::vector<GroupFold> folds;
  folds.reserve(groups.size());
  for (const std::vector<int64_t>& group : groups) {
    folds.push_back({absl::StrCat("[", RangesText(group), "]"), {group}});
  }
  for (size_t before = 0; before != folds.size();) {
    before = folds.size();
    folds = JoinShifted(folds);
  }
  return absl::StrJoin(
      folds, " ", [](std::string* out, const GroupFold& fold) { absl::StrAppend(out, fold.text); });
}

}  // namespace

std::string GroupsJson(const std::vector<RankGroupKind>& kinds) {
  JsonWriter json;
  json.BeginObject();
  for (const RankGroupKind& kind : kinds) {
    json.NewLine().Key(kind.name).BeginArray();
    for (const std::vector<int64_t>& group : kind.groups) json.Integers(group);
    json.EndArray();
  }
  json.NewLine().EndObject();
  return std::move(json).Finish();
}

std::string GroupsText(const std::vector<RankGroupKind>& kinds, bool all) {
  std::vector<std::vector<std::string>> rows = {{"kind", "groups", "ranks in each", ""}};
  for (const RankGroupKind& kind : kinds) {
    const std::string groups = ListText(kind.groups);
    rows.push_back({kind.name, absl::StrCat(kind.groups.size()),
                    absl::StrCat(kind.groups.front().size()),
                    all || groups.size() <= kLongestList ? groups : FoldedText(kind.groups)});
  }
  return TableText(rows, {false, true, true, false});
}

ParallelConfig ConfigOfMesh(const Mesh& mesh) {
  ParallelConfig config;
  config.world_size = mesh.world_size();
  config.tp = mesh.Size(mesh.Find("tp"));
  config.cp = mesh.Size(mesh.Find("cp"));
  config.pp = mesh.Size(mesh.Find("pp"));
  std::vector<std::string> order;
  for (const MeshAxis& axis : mesh.axes()) {
    const std::string name = axis.name.substr(0, axis.name.find('.'));
    if (std::count(order.begin(), order.end(), name) == 0) order.push_back(name);
  }
  config.order = order.empty() ? kDefaultAxisOrder : absl::StrJoin(order, "-");
  return config;
}

}  // namespace mgc
