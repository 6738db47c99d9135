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
int64_t DenseReplica(const RankGroupSpec& spec) {
  return SaturatingMultiply(SaturatingMultiply(spec.tp, spec.pp), spec.cp);
}
int64_t ExpertTp(const RankGroupSpec& spec) { return spec.etp > 0 ? spec.etp : spec.tp; }
int64_t ExpertReplica(const RankGroupSpec& spec) {
  return SaturatingMultiply(SaturatingMultiply(ExpertTp(spec), spec.ep), spec.pp);
}

std::vector<MeshAxis> DenseAxes(const RankGroupSpec& spec) {
  return {{"tp", spec.tp},
          {"cp", spec.cp},
          {"dp", spec.world_size / DenseReplica(spec)},
          {"pp", spec.pp}};
}
std::vector<MeshAxis> ExpertAxes(const RankGroupSpec& spec) {
  return {{"tp", ExpertTp(spec)},
          {"ep", spec.ep},
          {"dp", spec.world_size / ExpertReplica(spec)},
          {"pp", spec.pp}};
}

Diagnostics CheckValues(const RankGroupSpec& spec) {
  Diagnostics violations;
  const std::array<std::pair<const char*, int64_t>, 6> sizes = {{{"world size", spec.world_size},
                                                                 {"tp", spec.tp},
                                                                 {"cp", spec.cp},
                                                                 {"ep", spec.ep},
                                                                 {"etp", ExpertTp(spec)},
                                                                 {"pp", spec.pp}}};
  for (const auto& [name, size] : sizes) {
    if (size >= 1 && size <= kMaxWorldSize) continue;
    violations.Add({"G0",
                    absl::StrCat(name, " is ", size, ", must be between 1 and ", kMaxWorldSize),
                    size < 1 ? "1" : absl::StrCat(kMaxWorldSize)});
  }
  absl::Status order = CheckAxisOrder(spec.order);
  if (!order.ok()) violations.Add({"G0", std::string(order.message()), kDefaultAxisOrder});
  return violations;
}

// The axes above 1 that the order does not name; dp counts as 1 where it does not come out whole.
std::vector<MeshAxis> AxesNotInOrder(const RankGroupSpec& spec) {
  const int64_t dense = DenseReplica(spec);
  const int64_t dp = spec.world_size % dense == 0 ? spec.world_size / dense : 1;
  std::vector<MeshAxis> axes = {
      {"tp", spec.tp}, {"cp", spec.cp}, {"ep", spec.ep}, {"dp", dp}, {"pp", spec.pp}};
  const std::vector<std::string> named = absl::StrSplit(spec.order, '-');
  const auto fine = [&named](const MeshAxis& axis) {
    return axis.size == 1 || std::count(named.begin(), named.end(), axis.name) > 0;
  };
  axes.erase(std::remove_if(axes.begin(), axes.end(), fine), axes.end());
  return axes;
}

// The order with all axes that it lacks, and pp its slowest where it was that or where experts are,
// whose grid then always agrees with the dense one.
std::string LegalOrder(const RankGroupSpec& spec) {
  std::vector<std::string> names = absl::StrSplit(spec.order, '-');
  const bool pp_last = names.back() == "pp" || spec.ep > 1;
  for (const MeshAxis& axis : AxesNotInOrder(spec)) names.push_back(axis.name);
  if (pp_last) {
    names.erase(std::remove(names.begin(), names.end(), "pp"), names.end());
    names.push_back("pp");
  }
  return absl::StrJoin(names, "-");
}

// G3: axes above 1 that the order does not name.
void CheckOrderHasAxes(const RankGroupSpec& spec, Diagnostics* violations) {
  for (const MeshAxis& axis : AxesNotInOrder(spec)) {
    violations->Add(
        {"G3",
         absl::StrCat("order ", spec.order, " lacks axis ", axis.name, " of size ", axis.size),
         absl::StrCat("order ", LegalOrder(spec))});
  }
}

// G5 and G6, for two grids that exist.
void CheckGridsAgree(const RankGroupSpec& spec, Diagnostics* violations) {
  const int64_t dp = spec.world_size / DenseReplica(spec);
  const int64_t expert_dp = spec.world_size / ExpertReplica(spec);
  const std::string hint = absl::StrCat("order ", LegalOrder(spec));
  const bool ends_in_pp = spec.order == "pp" || absl::EndsWith(spec.order, "-pp");
  if (!ends_in_pp && spec.pp > 1 && expert_dp != dp) {
    violations->Add({"G5",
                     absl::StrCat("order ", spec.order, " does not end in pp, pp is ", spec.pp,
                                  ", and dp ", dp, " differs from the experts' dp ", expert_dp),
                     hint});
  }
  const absl::StatusOr<Mesh> dense = Mesh::FromOrder(spec.order, DenseAxes(spec));
  const absl::StatusOr<Mesh> expert = Mesh::FromOrder(spec.order, ExpertAxes(spec));
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

Diagnostics CheckRankGroups(const RankGroupSpec& spec) {
  Diagnostics violations = CheckValues(spec);
  if (!violations.empty()) return violations;
  const int64_t dense = DenseReplica(spec);
  const int64_t expert = ExpertReplica(spec);
  const bool dense_divides = spec.world_size % dense == 0;
  const bool expert_divides = spec.world_size % expert == 0;
  if (!dense_divides) {
    violations.Add({"G1",
                    absl::StrCat("world size ", spec.world_size, " is not divisible by tp ",
                                 spec.tp, " * pp ", spec.pp, " * cp ", spec.cp, " = ", dense),
                    absl::StrCat("world size ", NearestMultiples(spec.world_size, dense))});
  }
  CheckOrderHasAxes(spec, &violations);
  if (spec.ep == 1) return violations;
  if (!expert_divides) {
    violations.Add(
        {"G2",
         absl::StrCat("world size ", spec.world_size, " is not divisible by etp ", ExpertTp(spec),
                      " * ep ", spec.ep, " * pp ", spec.pp, " = ", expert),
         absl::StrCat("world size ", NearestMultiples(spec.world_size, expert))});
  }
  if (dense_divides && expert_divides) CheckGridsAgree(spec, &violations);
  return violations;
}

absl::StatusOr<Mesh> DenseMesh(const RankGroupSpec& spec) {
  MGC_RETURN_IF_ERROR(CheckRankGroups(spec).ToStatus());
  return Mesh::FromOrder(spec.order, DenseAxes(spec));
}

absl::StatusOr<std::vector<RankGroupKind>> BuildRankGroups(const RankGroupSpec& spec) {
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, DenseMesh(spec));
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
