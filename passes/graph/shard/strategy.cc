#include "passes/graph/shard/strategy.h"

#include <numeric>

#include "graph/base/status.h"
#include "passes/config/rank_groups.h"

namespace mgc {
namespace {

bool Matches(const StrategyRow& row, const TensorType& type) {
  if (row.pattern.empty()) return true;
  if (row.pattern.size() != type.dims.size()) return false;
  for (size_t i = 0; i < row.pattern.size(); ++i) {
    if (row.pattern[i] != type.dims[i].name) return false;
  }
  return true;
}

}  // namespace

Sharding Strategy::Seed(const TensorType& type) const {
  Sharding sharding = Sharding::Whole(type.ndim());
  AxisSet used;
  for (const StrategyRow& row : rows) {
    if (!Matches(row, type)) continue;
    for (const auto& [name, axes] : row.rules) {
      for (int i = 0; i < type.ndim(); ++i) {
        if (type.dims[i].name != name || used.Intersects(axes.AsSet())) continue;
        if (!sharding.dims[i].empty()) continue;
        sharding.dims[i] = axes;
        used |= axes.AsSet();
      }
    }
  }
  return sharding;
}

bool Strategy::HasHome(const TensorType& type) const {
  if (type.ndim() != 3) return false;
  return type.dims[0].name == "batch" && type.dims[1].name == "seq" && type.dims[2].name == "embed";
}

absl::StatusOr<Mesh> MeshOf(const ParallelConfig& config, int64_t kv_heads) {
  MGC_ASSIGN_OR_RETURN(Mesh mesh, DenseMesh(config));
  const int64_t shared = std::gcd(kv_heads, config.tp);
  if (config.tp == 1 || shared == 1 || shared == config.tp) return mesh;
  return mesh.Split("tp", {shared, config.tp / shared});
}

Strategy MegatronStrategy(const ParallelConfig& config, int64_t kv_heads, const Mesh& mesh) {
  const AxisList tp = mesh.Find("tp");
  const AxisList data = mesh.Find("dp");
  AxisList kv;  // a kv head may be shared: by all tensor-parallel ranks, or by those of tp.1
  if (kv_heads % config.tp == 0) {
    kv = tp;
  } else if (mesh.FindAtomic("tp.0") >= 0) {
    kv = {mesh.FindAtomic("tp.0")};
  }
  Strategy strategy;
  strategy.rows.push_back({{}, {{"batch", data}}});
  strategy.rows.push_back({{}, {{"heads", tp}, {"kv_heads", kv}, {"mlp", tp}, {"vocab", tp}}});
  if (config.sequence_parallel) {
    strategy.rows.push_back({{"batch", "seq", "embed"}, {{"seq", tp}}});
  }
  if (config.zero >= 1) strategy.storage_axes = data.AsSet();
  return strategy;
}

}  // namespace mgc
