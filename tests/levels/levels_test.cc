// Real graphs of every level: both model families through the graph passes on several meshes. Each
// level passes its check, and reads back from text and bytes as it was written; of the sharded one
// every layout has been decided by what the strategy says.

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/ir/check.h"
#include "graph/ir/testing/graph_difference.h"
#include "graph/proto/wire.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "gtest/gtest.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/simplify.h"

namespace mgc {
namespace {

struct Case {
  const char* model;
  int64_t tp;
  int64_t dp;
  bool sequence_parallel;
  int64_t zero;
};

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  std::string name =
      absl::StrCat(info.param.model, "_tp", info.param.tp, "_dp", info.param.dp,
                   info.param.sequence_parallel ? "_sp" : "", "_zero", info.param.zero);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

void ExpectSound(const Graph& graph) {
  SCOPED_TRACE(absl::StrCat(graph.name(), " ", NameOf(graph.level())));
  EXPECT_TRUE(CheckGraph(graph).ok()) << CheckGraph(graph);
  const std::string text = PrintGraph(graph);
  const absl::StatusOr<Graph> read = ParseGraph(text, "text");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(GraphDifference(graph, *read, /*numbering=*/false), "");
  EXPECT_EQ(PrintGraph(*read), text);
  const absl::StatusOr<Graph> wired = DeserializeGraph(SerializeGraph(graph));
  ASSERT_TRUE(wired.ok()) << wired.status();
  EXPECT_EQ(GraphDifference(graph, *wired, /*numbering=*/true), "");
}

// Every axis of every layout goes back, decision by decision, to what the strategy says, or to
// ranks that each have a term.
void ExpectEveryLayoutDecided(const Graph& training, const Sharded& sharded,
                              const ShardRecord& record) {
  std::map<std::pair<ValueId, AxisId>, const ShardDecision*> last;
  for (const ShardDecision& decision : record.decisions) {
    if (decision.rule != ShardRule::kPaid) last[{decision.value, decision.axis}] = &decision;
  }
  for (size_t v = 0; v < sharded.homes.size(); ++v) {
    if (sharded.homes[v] == kNone) continue;
    const Sharding& home = sharded.graph.sharding(sharded.homes[v]);
    for (AxisId axis : home.UsedAxes()) {
      ValueId now = static_cast<ValueId>(v);
      const ShardDecision* decision = last[{now, axis}];
      ASSERT_NE(decision, nullptr) << training.value(now).name;
      const bool cuts = decision->dim >= 0 && home.dims[decision->dim].Contains(axis);
      EXPECT_EQ(cuts, home.SplitAxes().Contains(axis)) << training.value(now).name;
      size_t links = 0;
      while (decision->by != kNone && decision->by != now) {
        now = decision->by;
        decision = last[{now, axis}];
        ASSERT_NE(decision, nullptr) << training.value(now).name;
        ASSERT_LT(++links, sharded.homes.size()) << training.value(now).name;
      }
      EXPECT_TRUE(!decision->said.empty() || decision->rule == ShardRule::kLifts)
          << training.value(now).name;
    }
  }
}

class LevelsTest : public testing::TestWithParam<Case> {};

TEST_P(LevelsTest, EveryLevelIsSoundAndReadsBack) {
  const Case& test = GetParam();
  const absl::StatusOr<ModelConfig> config = LoadModelPreset(test.model);
  ASSERT_TRUE(config.ok()) << config.status();
  const absl::StatusOr<Graph> logical = BuildModel(*config, /*batch=*/2 * test.dp, /*seq=*/32);
  ASSERT_TRUE(logical.ok()) << logical.status();
  ExpectSound(*logical);
  const absl::StatusOr<Graph> training = Differentiate(Simplify(*logical));
  ASSERT_TRUE(training.ok()) << training.status();
  ExpectSound(*training);
  const Graph simple = Simplify(*training);
  ExpectSound(simple);

  ParallelConfig parallel;
  parallel.tp = test.tp;
  parallel.world_size = test.tp * test.dp;
  parallel.sequence_parallel = test.sequence_parallel;
  parallel.zero = test.zero;
  const absl::StatusOr<MeshStrategy> bound =
      BindStrategy(DefaultStrategy(), parallel, SizesOf(simple));
  ASSERT_TRUE(bound.ok()) << bound.status();
  ShardRecord record;
  const absl::StatusOr<Sharded> sharded = Shard(simple, bound->mesh, bound->strategy, &record);
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  const absl::StatusOr<Sharded> unwatched = Shard(simple, bound->mesh, bound->strategy);
  ASSERT_TRUE(unwatched.ok()) << unwatched.status();
  EXPECT_EQ(GraphDifference(sharded->graph, unwatched->graph, /*numbering=*/true), "");
  ExpectEveryLayoutDecided(simple, *sharded, record);
  ExpectSound(sharded->graph);
  ExpectSound(Partition(sharded->graph));
}

INSTANTIATE_TEST_SUITE_P(
    All, LevelsTest,
    testing::Values(Case{"gpt2-tiny", 1, 1, false, 0}, Case{"gpt2-tiny", 2, 2, false, 0},
                    Case{"gpt2-tiny", 4, 3, true, 1}, Case{"llama-tiny", 1, 2, false, 1},
                    Case{"llama-tiny", 2, 2, true, 0}, Case{"llama-tiny", 8, 1, false, 0},
                    Case{"llama-tiny", 8, 2, true, 1}),
    NameOfCase);

}  // namespace
}  // namespace mgc
