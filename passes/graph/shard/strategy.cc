#include "passes/graph/shard/strategy.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "passes/config/rank_groups.h"
#include "passes/config/strategy_text.h"

namespace mgc {
namespace {

bool InScope(absl::string_view scope, const ValueNames& names) {
  return scope.empty() || MatchesGlob(scope, names.name) ||
         (!names.origin.empty() && MatchesGlob(scope, names.origin));
}

bool Matches(const StrategyRow& row, const TensorType& type, const ValueNames& names) {
  if (!InScope(row.scope, names)) return false;
  if (row.pattern.empty()) return true;
  if (row.pattern.size() != type.dims.size()) return false;
  for (size_t i = 0; i < row.pattern.size(); ++i) {
    if (!row.pattern[i].empty() && row.pattern[i] != type.dims[i].name) return false;
  }
  return true;
}

bool Holds(StrategyCondition when, const ParallelConfig& config) {
  switch (when) {
    case StrategyCondition::kAlways:
      return true;
    case StrategyCondition::kSequenceParallel:
      return config.sequence_parallel;
    case StrategyCondition::kZero:
      return config.zero >= 1;
    case StrategyCondition::kZero2:
      return config.zero >= 2;
    case StrategyCondition::kZero3:
      return config.zero >= 3 && config.reshard_after_forward;
  }
  return false;
}

// Splits the mesh's axes as the strategy says and binds its rows to them.
class Binder {
 public:
  Binder(const StrategySpec& spec, const ParallelConfig& config, const SizeByDim& sizes)
      : spec_(spec), config_(config), sizes_(sizes) {}

  absl::StatusOr<MeshStrategy> Bind() {
    MGC_ASSIGN_OR_RETURN(bound_.mesh, DenseMesh(config_));
    const bool in_groups = std::any_of(spec_.splits.begin(), spec_.splits.end(),
                                       [](const AxisSplit& split) { return split.dim.empty(); });
    if (config_.zero_group > 0 && !in_groups) {
      return absl::InvalidArgumentError(
          "ZeRO groups are asked for, and the strategy splits no axis in them [U3]; legal: `split "
          "dp in zero_groups` in the strategy, or no --zero-group");
    }
    for (const AxisSplit& split : spec_.splits) MGC_RETURN_IF_ERROR(Split(split));
    for (const StrategyRowSpec& row : spec_.rows) BindRow(row);
    for (const StoreSpec& store : spec_.stores) {
      if (!Holds(store.when, config_)) continue;
      bound_.strategy.storage.push_back(
          {store.kind, AxesOf(store.axes).AsSet(), store.scope, StoreText(store)});
    }
    for (const GatherSpec& gather : spec_.gathers) {
      for (const std::string& dim : gather.dims) bound_.strategy.gathers[dim] = gather.taken;
    }
    bound_.strategy.uneven.insert(spec_.uneven.begin(), spec_.uneven.end());
    return std::move(bound_);
  }

 private:
  absl::Status Split(const AxisSplit& split) {
    const AxisList whole = bound_.mesh.Find(split.axis);
    if (whole.empty()) return absl::OkStatus();
    const int64_t ranks = bound_.mesh.Size(whole);
    const int64_t shared = RanksOfFirstPart(split, ranks);
    if (shared > 1 && shared < ranks) {
      MGC_ASSIGN_OR_RETURN(bound_.mesh, bound_.mesh.Split(split.axis, {shared, ranks / shared}));
      return absl::OkStatus();
    }
    // One part is the axis, the other has one rank.
    bound_.strategy.parts[absl::StrCat(split.axis, shared == 1 ? ".1" : ".0")] = whole;
    bound_.strategy.parts[absl::StrCat(split.axis, shared == 1 ? ".0" : ".1")] = {};
    return absl::OkStatus();
  }

  int64_t RanksOfFirstPart(const AxisSplit& split, int64_t ranks) const {
    if (split.dim.empty()) {
      return config_.zero_group == 0 ? 1 : std::max<int64_t>(ranks / config_.zero_group, 1);
    }
    const auto size = sizes_.find(split.dim);
    return size == sizes_.end() ? ranks : std::gcd(size->second, ranks);
  }

  void BindRow(const StrategyRowSpec& spec) {
    if (!Holds(spec.when, config_)) return;
    StrategyRow row{spec.pattern, {}, spec.home, spec.scope};
    for (const DimAxes& dim : spec.dims) {
      const AxisList axes = AxesOf(dim.axes);
      if (axes.empty() && !dim.axes.empty()) continue;
      row.rules.emplace_back(dim.dim, axes);
      row.said.push_back(RowTextOf(spec, dim));
    }
    if (row.home || !row.rules.empty()) bound_.strategy.rows.push_back(std::move(row));
  }

  AxisList AxesOf(const std::vector<std::string>& names) const {
    AxisList axes;
    for (const std::string& name : names) {
      const auto part = bound_.strategy.parts.find(name);
      axes.Append(part == bound_.strategy.parts.end() ? bound_.mesh.Find(name) : part->second);
    }
    return axes;
  }

  const StrategySpec& spec_;
  const ParallelConfig& config_;
  const SizeByDim& sizes_;
  MeshStrategy bound_;
};

}  // namespace

ValueNames NamesOf(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.producer == kNone) return {value.name, ""};
  return {value.name, graph.node(value.producer).origin};
}

Sharding Strategy::Seed(const TensorType& type, const ValueNames& names) const {
  Sharding sharding = Sharding::Whole(type.ndim());
  const std::vector<SeededDim> dims = SeedDims(type, names);
  for (size_t i = 0; i < dims.size(); ++i) sharding.dims[i] = dims[i].axes;
  return sharding;
}

std::vector<SeededDim> Strategy::SeedDims(const TensorType& type, const ValueNames& names) const {
  std::vector<SeededDim> dims(type.dims.size());
  AxisSet used;
  for (const StrategyRow& row : rows) {
    if (!Matches(row, type, names)) continue;
    for (size_t r = 0; r < row.rules.size(); ++r) {
      const auto& [name, axes] = row.rules[r];
      for (size_t i = 0; i < dims.size(); ++i) {
        if (type.dims[i].name != name || used.Intersects(axes.AsSet()) || dims[i].said) continue;
        dims[i] = {axes, r < row.said.size() ? row.said[r] : ""};
        used |= axes.AsSet();
      }
    }
  }
  return dims;
}

bool Strategy::HasHome(const TensorType& type, const ValueNames& names) const {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const StrategyRow& row) { return row.home && Matches(row, type, names); });
}

absl::optional<Sharding> Strategy::HomeOf(const Graph& graph, ValueId id, const Mesh& mesh) const {
  const Value& value = graph.value(id);
  if (value.producer == kNone || graph.node(value.producer).phase != Phase::kForward) {
    return absl::nullopt;
  }
  const ValueNames names = NamesOf(graph, id);
  if (!HasHome(value.type, names)) return absl::nullopt;
  Sharding home = Seed(value.type, names);
  if (!Allows(value.type, home, mesh)) return absl::nullopt;
  return home;
}

bool Strategy::Allows(const Dim& dim, int64_t pieces) const {
  return dim.size % pieces == 0 || dim.multiple != 1 || uneven.count(dim.name) > 0;
}

bool Strategy::Allows(const Dim& dim, const AxisList& axes, const Mesh& mesh) const {
  return Allows(dim, mesh.Size(axes));
}

bool Strategy::Allows(const TensorType& type, const Sharding& sharding, const Mesh& mesh) const {
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (!Allows(type.dims[i], sharding.dims[i], mesh)) return false;
  }
  return true;
}

const StorageRow* Strategy::StorageRowOf(StoredKind kind, absl::string_view parameter) const {
  for (const StorageRow& row : storage) {
    if (row.kind == kind && InScope(row.scope, {parameter, ""})) return &row;
  }
  return nullptr;
}

AxisSet Strategy::StorageOf(absl::string_view parameter) const {
  const StorageRow* row = StorageRowOf(StoredKind::kStates, parameter);
  return row == nullptr ? AxisSet() : row->axes;
}

bool Strategy::Stores(const Graph& graph, const GraphInput& input) const {
  const Value& value = graph.value(input.value);
  return input.kind == InputKind::kParam && IsTrained(input.attrs) && value.type.ndim() > 0 &&
         !StorageOf(value.name).empty();
}

GatherTaken Strategy::TakenGather(absl::string_view dim) const {
  const auto found = gathers.find(dim);
  return found == gathers.end() ? GatherTaken::kNote : found->second;
}

SizeByDim SizesOf(const Graph& graph) {
  SizeByDim sizes;
  for (const Value& value : graph.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name.empty()) continue;
      int64_t& size = sizes[dim.name];
      size = std::max(size, dim.size);
    }
  }
  return sizes;
}

absl::StatusOr<MeshStrategy> BindStrategy(const StrategySpec& spec, const ParallelConfig& config,
                                          const SizeByDim& sizes) {
  return Binder(spec, config, sizes).Bind();
}

}  // namespace mgc
