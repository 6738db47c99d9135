#include "passes/config/rank_groups.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "passes/config/nearest_legal.h"

namespace mgc {
namespace {

constexpr std::array<absl::string_view, 5> kAxisNames = {"tp", "cp", "ep", "dp", "pp"};

constexpr std::array<const char*, 9> kDenseKinds = {"tp",    "cp",    "dp",    "pp",      "tp-cp",
                                                    "tp-dp", "tp-pp", "dp-cp", "tp-dp-cp"};

// Ranks of one copy of the dense layers and of one copy of the expert layers.
int64_t DenseReplica(const ParallelConfig& config) {
  return SaturatingMultiply(SaturatingMultiply(config.tp, config.pp), config.cp);
}
int64_t ExpertTp(const ParallelConfig& config) { return config.etp > 0 ? config.etp : config.tp; }
int64_t ExpertReplica(const ParallelConfig& config) {
  return SaturatingMultiply(SaturatingMultiply(ExpertTp(config), config.ep), config.pp);
}

std::vector<MeshAxis> DenseAxes(const ParallelConfig& config) {
  return {{"tp", config.tp},
          {"cp", config.cp},
          {"dp", config.world_size / DenseReplica(config)},
          {"pp", config.pp}};
}
std::vector<MeshAxis> ExpertAxes(const ParallelConfig& config) {
  return {{"tp", ExpertTp(config)},
          {"ep", config.ep},
          {"dp", config.world_size / ExpertReplica(config)},
          {"pp", config.pp}};
}

Diagnostics CheckValues(const ParallelConfig& config) {
  Diagnostics violations;
  const std::array<std::pair<const char*, int64_t>, 6> sizes = {{{"world size", config.world_size},
                                                                 {"tp", config.tp},
                                                                 {"cp", config.cp},
                                                                 {"ep", config.ep},
                                                                 {"etp", ExpertTp(config)},
                                                                 {"pp", config.pp}}};
  for (const auto& [name, size] : sizes) {
    if (size >= 1 && size <= kMaxWorldSize) continue;
    violations.Add({"G0",
                    absl::StrCat(name, " is ", size, ", must be between 1 and ", kMaxWorldSize),
                    size < 1 ? "1" : absl::StrCat(kMaxWorldSize)});
  }
  absl::Status order = CheckAxisOrder(config.order);
  if (!order.ok()) violations.Add({"G0", std::string(order.message()), kDefaultAxisOrder});
  return violations;
}

// The axes above 1 that the order does not name; dp counts as 1 where it does not come out whole.
std::vector<MeshAxis> AxesNotInOrder(const ParallelConfig& config) {
  const int64_t dense = DenseReplica(config);
  const int64_t dp = config.world_size % dense == 0 ? config.world_size / dense : 1;
  std::vector<MeshAxis> axes = {
      {"tp", config.tp}, {"cp", config.cp}, {"ep", config.ep}, {"dp", dp}, {"pp", config.pp}};
  const std::vector<std::string> named = absl::StrSplit(config.order, '-');
  const auto fine = [&named](const MeshAxis& axis) {
    return axis.size == 1 || std::count(named.begin(), named.end(), axis.name) > 0;
  };
  axes.erase(std::remove_if(axes.begin(), axes.end(), fine), axes.end());
  return axes;
}

// The order with all axes that it lacks, and pp its slowest where it was that or where experts are,
// whose grid then always agrees with the dense one.
std::string LegalOrder(const ParallelConfig& config) {
  std::vector<std::string> names = absl::StrSplit(config.order, '-');
  const bool pp_last = names.back() == "pp" || config.ep > 1;
  for (const MeshAxis& axis : AxesNotInOrder(config)) names.push_back(axis.name);
  if (pp_last) {
    names.erase(std::remove(names.begin(), names.end(), "pp"), names.end());
    names.push_back("pp");
  }
  return absl::StrJoin(names, "-");
}

// G3: axes above 1 that the order does not name.
void CheckOrderHasAxes(const ParallelConfig& config, Diagnostics* violations) {
  for (const MeshAxis& axis : AxesNotInOrder(config)) {
    violations->Add(
        {"G3",
         absl::StrCat("order ", config.order, " lacks axis ", axis.name, " of size ", axis.size),
         absl::StrCat("order ", LegalOrder(config))});
  }
}

// G5 and G6, for two grids that exist.
void CheckGridsAgree(const ParallelConfig& config, Diagnostics* violations) {
  const int64_t dp = config.world_size / DenseReplica(config);
  const int64_t expert_dp = config.world_size / ExpertReplica(config);
  const std::string hint = absl::StrCat("order ", LegalOrder(config));
  const bool ends_in_pp = config.order == "pp" || absl::EndsWith(config.order, "-pp");
  if (!ends_in_pp && config.pp > 1 && expert_dp != dp) {
    violations->Add({"G5",
                     absl::StrCat("order ", config.order, " does not end in pp, pp is ", config.pp,
                                  ", and dp ", dp, " differs from the experts' dp ", expert_dp),
                     hint});
  }
  const absl::StatusOr<Mesh> dense = Mesh::FromOrder(config.order, DenseAxes(config));
  const absl::StatusOr<Mesh> expert = Mesh::FromOrder(config.order, ExpertAxes(config));
  if (!dense.ok() || !expert.ok()) return;
  if (dense->Groups(dense->Find("pp").AsSet()) != expert->Groups(expert->Find("pp").AsSet())) {
    violations->Add({"G6",
                     absl::StrCat("the pipeline groups of the dense grid ", dense->ToString(),
                                  " and of the expert grid ", expert->ToString(), " differ"),
                     hint});
  }
}

}  // namespace

absl::Status CheckAxisOrder(absl::string_view order) {
  std::vector<absl::string_view> seen;
  for (absl::string_view name : absl::StrSplit(order, '-')) {
    if (std::count(kAxisNames.begin(), kAxisNames.end(), name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "order '", order, "': '", name, "' is not one of ", absl::StrJoin(kAxisNames, ", ")));
    }
    if (std::count(seen.begin(), seen.end(), name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("order '", order, "' names ", name, " twice"));
    }
    seen.push_back(name);
  }
  return absl::OkStatus();
}

Diagnostics CheckRankGroups(const ParallelConfig& config) {
  Diagnostics violations = CheckValues(config);
  if (!violations.empty()) return violations;
  const int64_t dense = DenseReplica(config);
  const int64_t expert = ExpertReplica(config);
  const bool dense_divides = config.world_size % dense == 0;
  const bool expert_divides = config.world_size % expert == 0;
  if (!dense_divides) {
    violations.Add({"G1",
                    absl::StrCat("world size ", config.world_size, " is not divisible by tp ",
                                 config.tp, " * pp ", config.pp, " * cp ", config.cp, " = ", dense),
                    absl::StrCat("world size ", NearestMultiples(config.world_size, dense))});
  }
  CheckOrderHasAxes(config, &violations);
  if (config.ep == 1) return violations;
  if (!expert_divides) {
    violations.Add(
        {"G2",
         absl::StrCat("world size ", config.world_size, " is not divisible by etp ",
                      ExpertTp(config), " * ep ", config.ep, " * pp ", config.pp, " = ", expert),
         absl::StrCat("world size ", NearestMultiples(config.world_size, expert))});
  }
  if (dense_divides && expert_divides) CheckGridsAgree(config, &violations);
  return violations;
}

absl::StatusOr<Mesh> DenseMesh(const ParallelConfig& config) {
  MGC_RETURN_IF_ERROR(CheckRankGroups(config).ToStatus());
  return Mesh::FromOrder(config.order, DenseAxes(config));
}

absl::StatusOr<std::vector<RankGroupKind>> BuildRankGroups(const ParallelConfig& config) {
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, DenseMesh(config));
  std::vector<RankGroupKind> kinds;
  for (const char* kind : kDenseKinds) {
    AxisSet axes;
    for (absl::string_view name : absl::StrSplit(kind, '-')) axes |= mesh.Find(name).AsSet();
    kinds.push_back({kind, mesh.Groups(axes)});
  }
  RankGroupKind embedding{"embedding", {}};
  RankGroupKind position{"position-embedding", {}};
  for (const std::vector<int64_t>& pipeline : mesh.Groups(mesh.Find("pp").AsSet())) {
    embedding.groups.push_back({pipeline.front()});
    if (pipeline.size() > 1) embedding.groups.back().push_back(pipeline.back());
    position.groups.push_back({pipeline.front()});
  }
  kinds.push_back(std::move(embedding));
  kinds.push_back(std::move(position));
  return kinds;
}

}  // namespace mgc
