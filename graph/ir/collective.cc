#include "graph/ir/collective.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

// The axes `longer` has behind those of `shorter`; false when it does not start with them.
bool Suffix(const AxisList& shorter, const AxisList& longer, AxisList* out) {
  if (longer.size() <= shorter.size()) return false;
  for (int i = 0; i < shorter.size(); ++i) {
    if (shorter[i] != longer[i]) return false;
  }
  for (int i = shorter.size(); i < longer.size(); ++i) out->push_back(longer[i]);
  return true;
}

// Finds the one dim (or the storage) whose axes grew from `from` to `to`.
bool FindGrowth(const Sharding& from, const Sharding& to, Collective* out) {
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (Suffix(from.dims[i], to.dims[i], &out->axes)) {
      out->dim = static_cast<int>(i);
      return true;
    }
  }
  return Suffix(from.storage, to.storage, &out->axes);
}

AxisList Listed(AxisSet axes) {
  AxisList list;
  for (AxisId axis : axes) list.push_back(axis);
  return list;
}

bool Fill(const Sharding& from, const Sharding& to, absl::string_view op, Collective* out) {
  if (op == "all_reduce") {
    const bool maximum = from.max != to.max;
    out->kind = maximum ? CollectiveKind::kAllReduceMax : CollectiveKind::kAllReduce;
    out->axes = Listed(maximum ? from.max - to.max : from.sum - to.sum);
    return !out->axes.empty();
  }
  if (op == "lift") {
    out->kind = CollectiveKind::kLift;
    out->axes = Listed(to.sum - from.sum);
    return !out->axes.empty();
  }
  if (op == "all_gather") {
    out->kind = CollectiveKind::kAllGather;
    return FindGrowth(to, from, out);
  }
  if (op == "shard_slice") {
    out->kind = CollectiveKind::kSlice;
    return FindGrowth(from, to, out);
  }
  if (op == "reduce_scatter") {
    out->kind = CollectiveKind::kReduceScatter;
    return FindGrowth(from, to, out) && from.sum - to.sum == out->axes.AsSet();
  }
  out->kind = CollectiveKind::kAllToAll;
  AxisList left;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (Suffix(to.dims[i], from.dims[i], &left)) out->dim = static_cast<int>(i);
    if (Suffix(from.dims[i], to.dims[i], &out->axes)) out->to_dim = static_cast<int>(i);
  }
  return out->dim >= 0 && out->to_dim >= 0 && left == out->axes;
}

}  // namespace

absl::string_view NameOf(CollectiveKind kind) {
  constexpr absl::string_view kNames[] = {
      "all-reduce", "all-reduce-max", "all-gather", "reduce-scatter",
      "all-to-all", "slice",          "lift"};
  return kNames[static_cast<int>(kind)];
}

bool PaysOverData(const Collective& collective, const Mesh& mesh) {
  const bool pays = collective.kind == CollectiveKind::kAllReduce ||
                    collective.kind == CollectiveKind::kReduceScatter;
  const AxisSet data = mesh.Find("dp").AsSet() | mesh.Find("cp").AsSet();
  return pays && !(collective.axes.AsSet() & data).empty();
}

absl::StatusOr<Collective> CollectiveBetween(const Sharding& from, const Sharding& to,
                                             absl::string_view op) {
  Collective made;
  const bool found = from.dims.size() == to.dims.size() && Fill(from, to, op, &made);
  const bool cuts_stored = found && made.dim >= 0 && !(from.storage.empty() && to.storage.empty());
  if (found && !cuts_stored && ShardingAfter(made, from) == to) return made;
  return absl::InvalidArgumentError(
      absl::StrCat("operand and result do not differ by one ", op, " [local_c3]"));
}

Sharding ShardingAfter(const Collective& collective, Sharding from) {
  const auto list = [&](int dim) -> AxisList& {
    return dim < 0 ? from.storage : from.dims[static_cast<size_t>(dim)];
  };
  const AxisSet axes = collective.axes.AsSet();
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      from.sum -= axes;
      break;
    case CollectiveKind::kAllReduceMax:
      from.max -= axes;
      break;
    case CollectiveKind::kAllGather:
      for (AxisId axis : axes) list(collective.dim).Remove(axis);
      break;
    case CollectiveKind::kReduceScatter:
      from.sum -= axes;
      list(collective.dim).Append(collective.axes);
      break;
    case CollectiveKind::kAllToAll:
      for (AxisId axis : axes) list(collective.dim).Remove(axis);
      list(collective.to_dim).Append(collective.axes);
      break;
    case CollectiveKind::kSlice:
      list(collective.dim).Append(collective.axes);
      break;
    case CollectiveKind::kLift:
      from.sum |= axes;
      break;
  }
  return from;
}

Collective CollectiveOf(const Graph& graph, const Node& node) {
  absl::StatusOr<Collective> collective = CollectiveBetween(
      graph.sharding(node.inputs[0]), graph.sharding(node.outputs[0]), node.op->name);
  MGC_CHECK(collective.ok()) << collective.status().ToString();
  return *collective;
}

}  // namespace mgc
