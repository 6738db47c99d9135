#include "tools/views/groups.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/json_writer.h"
#include "tools/views/format.h"

namespace mgc {

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

std::string GroupsText(const std::vector<RankGroupKind>& kinds, int max_groups) {
  std::vector<std::vector<std::string>> rows = {{"kind", "groups", "ranks in each", ""}};
  for (const RankGroupKind& kind : kinds) {
    const size_t shown = std::min(kind.groups.size(), static_cast<size_t>(max_groups));
    std::string groups;
    for (size_t i = 0; i < shown; ++i) {
      absl::StrAppend(&groups, i > 0 ? " " : "", "[", absl::StrJoin(kind.groups[i], " "), "]");
    }
    if (shown < kind.groups.size()) absl::StrAppend(&groups, " ...");
    rows.push_back({kind.name, absl::StrCat(kind.groups.size()),
                    absl::StrCat(kind.groups.front().size()), groups});
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
