#include "tests/derivation/collective_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

int64_t BytesOf(const Graph& graph, ValueId id) {
  return NumElements(graph.local_shape(id)) * SizeOf(graph.type(id).dtype);
}

template <class Wanted>
std::vector<CollectiveEntry> Collect(const Graph& graph, const Wanted& wanted) {
  std::vector<CollectiveEntry> entries;
  for (const Node& node : graph.nodes()) {
    if (!node.op->collective || !wanted(node)) continue;
    const Collective collective = CollectiveOf(graph, node);
    if (!collective.MovesData()) continue;
    entries.push_back({graph.value(node.outputs[0]).name, std::string(NameOf(collective.kind)),
                       graph.mesh().GroupName(collective.axes.AsSet()), node.attrs.Text("label"),
                       std::max(BytesOf(graph, node.inputs[0]), BytesOf(graph, node.outputs[0]))});
  }
  return entries;
}

}  // namespace

std::vector<CollectiveEntry> CollectivesOf(const Graph& local, Phase phase, int layer) {
  return Collect(local, [&](const Node& node) {
    return node.phase == phase && (!IsOfMicroBatch(phase) || node.layer == layer);
  });
}

std::vector<CollectiveEntry> CollectivesOfPasses(const Graph& local) {
  return Collect(local, [](const Node& node) { return IsOfMicroBatch(node.phase); });
}

std::string RowOf(absl::string_view kind, absl::string_view group, int64_t bytes) {
  return absl::StrCat(kind, " ", group, " ", bytes);
}

CollectiveTable TableOf(const std::vector<CollectiveEntry>& entries) {
  CollectiveTable table;
  for (const CollectiveEntry& entry : entries) ++table[RowOf(entry.kind, entry.group, entry.bytes)];
  return table;
}

CollectiveTable KindsOf(const std::vector<CollectiveEntry>& entries) {
  CollectiveTable table;
  for (const CollectiveEntry& entry : entries) ++table[absl::StrCat(entry.kind, " ", entry.group)];
  return table;
}

}  // namespace mgc
