#include "passes/plan/testing/text_graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {

Graph ReadGraph(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, "test");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::vector<std::string> Listing(const Graph& graph, Phase phase) {
  const auto names = [&](const std::vector<ValueId>& ids) {
    return absl::StrJoin(ids, ", ", [&](std::string* out, ValueId id) {
      absl::StrAppend(out, graph.value(id).name);
    });
  };
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    if (node.phase != phase) continue;
    lines.push_back(
        absl::StrCat(names(node.outputs), " = ", node.op->name, "(", names(node.inputs), ")"));
  }
  return lines;
}

}  // namespace mgc
