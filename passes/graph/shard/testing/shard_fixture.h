// Graphs in text, sharded over tp 2, dp 2 and pp 2 with rows that a test says.

#ifndef MGC_PASSES_GRAPH_SHARD_TESTING_SHARD_FIXTURE_H_
#define MGC_PASSES_GRAPH_SHARD_TESTING_SHARD_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "passes/graph/shard/shard.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {

using Lines = std::vector<std::string>;

class ShardTest : public testing::Test {
 protected:
  ShardTest() : mesh_(*Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}})) {
    strategy_.rows.push_back({{"batch", "seq", "embed"}, {}, /*home=*/true});
    strategy_.gathers = {{"seq", GatherTaken::kSilent}, {"heads", GatherTaken::kError}};
  }

  // Gives dims of this name an axis.
  void Row(const std::string& name, const char* axis) {
    strategy_.rows.push_back({{}, {{name, mesh_.Find(axis)}}});
  }
  void SequenceRow() {
    strategy_.rows.push_back({{"batch", "seq", "embed"}, {{"seq", mesh_.Find("tp")}}});
  }

  Graph MustShard(const char* text) { return MustShard(ReadGraph(text)); }
  Graph MustShard(const Graph& training) {
    absl::StatusOr<Sharded> sharded = Shard(training, mesh_, strategy_);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    if (!sharded.ok()) return Graph();
    EXPECT_TRUE(CheckGraph(sharded->graph).ok()) << CheckGraph(sharded->graph);
    notes_ = sharded->notes;
    return std::move(sharded->graph);
  }

  std::string ShardingOf(const Graph& graph, const char* name) const {
    const ValueId id = graph.FindValue(name);
    return id == kNone ? "none" : ToString(graph.sharding(id), mesh_);
  }

  // `x.to: @m[tp] -> @m[-]` for every change of sharding, in program order.
  Lines Changes(const Graph& graph) const {
    Lines lines;
    for (const Node& node : graph.nodes()) {
      if (!node.op->Has(OpRole::kReshard)) continue;
      lines.push_back(absl::StrCat(graph.value(node.outputs[0]).name, ": ",
                                   ToString(graph.sharding(node.inputs[0]), mesh_), " -> ",
                                   ToString(graph.sharding(node.outputs[0]), mesh_)));
    }
    return lines;
  }

  const Mesh mesh_;
  Strategy strategy_;
  Lines notes_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_TESTING_SHARD_FIXTURE_H_
