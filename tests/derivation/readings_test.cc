// What a plain first reading of the sharding rules gets wrong: one test a reading, with a graph, a
// mesh and the collectives that must come out, and would not under that reading.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "frontends/layers.h"
#include "gtest/gtest.h"
#include "passes/graph/shard/strategy.h"
#include "tests/derivation/collective_table.h"
#include "tests/derivation/local_training.h"
#include "tests/derivation/one_layer.h"

namespace mgc {
namespace {

bool IsActivation(const Value& value) {
  const std::vector<Dim>& dims = value.type.dims;
  return dims.size() == 3 && dims[0].name == "batch" && dims[1].name == "seq" &&
         dims[2].name == "embed";
}

int CountOf(const Graph& local, absl::string_view op) {
  int count = 0;
  for (const Node& node : local.nodes()) count += node.op->name == op ? 1 : 0;
  return count;
}

TEST(ReadingTest, EachGradientProductResolvedByItself) {
  const auto three = [](ModelBuilder& b, Tensor x) { return Attention(b, "attention", x, x); };
  // Three products read x: one all-reduce of the sum of their gradients, or one reduce-scatter.
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(three), ConfigOf(2, 1, false, 0)), Phase::kBackward),
            (CollectiveTable{{"all-reduce tp", 1}}));
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(three), ConfigOf(2, 1, true, 0)), Phase::kBackward),
            (CollectiveTable{{"all-gather tp", 2}, {"reduce-scatter tp", 1}}));
  for (const TinyModel& model : {TinyGpt(), TinyLlama()}) {
    EXPECT_EQ(LayerKinds(LocalGraph(model, ConfigOf(2, 1, false, 0)), Phase::kBackward),
              (CollectiveTable{{"all-reduce tp", 2}}));
    EXPECT_EQ(LayerKinds(LocalGraph(model, ConfigOf(2, 1, true, 0)), Phase::kBackward),
              (CollectiveTable{{"all-gather tp", 4}, {"reduce-scatter tp", 2}}));
  }
}

TEST(ReadingTest, OwedCarriedThroughEveryLinearOp) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, false, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kBackward), (CollectiveTable{{"all-reduce tp", 2}}));
  int accumulators = 0;
  for (const GraphInput& input : local.inputs()) {
    if (input.kind != InputKind::kAccumulator) continue;
    ++accumulators;
    EXPECT_TRUE(local.sharding(input.value).sum.empty()) << local.value(input.value).name;
  }
  EXPECT_EQ(accumulators, 36 + 1 + 2);  // parameters, the second use of the tied one, loss, tokens
}

TEST(ReadingTest, NoGradientTieUnderSequenceParallelism) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, true, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kBackward).count("all-reduce tp"), 0u);
  // The whole gradient of a value of the residual stream is laid out as the value.
  int gradients = 0;
  for (const Value& value : local.values()) {
    const bool whole = absl::EndsWith(value.name, ".grad") && value.primal != kNone;
    if (!whole || !IsActivation(value) || !value.sharding->sum.empty()) continue;
    const Value& primal = local.value(value.primal);
    if (!IsActivation(primal)) continue;
    ++gradients;
    EXPECT_EQ(value.sharding->dims, primal.sharding->dims) << value.name;
  }
  EXPECT_GT(gradients, 4);
}

TEST(ReadingTest, OutputClaimsFirst) {
  // x is cut on seq, and so is what the layer returns; the products in between are cut on mlp.
  const Graph local = LocalOf(OneLayer(TwoProducts), ConfigOf(2, 1, true, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kForward),
            (CollectiveTable{{"all-gather tp", 1}, {"reduce-scatter tp", 1}}));
  const Graph gpt = LocalGraph(TinyGpt(), ConfigOf(2, 1, true, 0));
  EXPECT_EQ(LayerKinds(gpt, Phase::kForward),
            (CollectiveTable{{"all-gather tp", 2}, {"reduce-scatter tp", 2}}));
}

TEST(ReadingTest, OperandsLeftToRightWithoutParametersFirst) {
  // No weight is gathered: what is gathered is x alone.
  for (const TinyModel& model : {TinyGpt(), TinyLlama()}) {
    const Graph local = LocalGraph(model, ConfigOf(2, 1, true, 0));
    const int64_t stream = model.batch * model.seq * model.config.hidden * 4;
    EXPECT_EQ(TableOf(CollectivesOf(local, Phase::kForward, 0)),
              (CollectiveTable{{RowOf("all-gather", "tp", stream), 2},
                               {RowOf("reduce-scatter", "tp", stream), 2}}));
  }
}

TEST(ReadingTest, SeqSeededOnInputsOnly) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, true, 0));
  const AxisList tp = local.mesh().Find("tp");
  // The stream, and what is computed from it token by token.
  int cut = 0;
  for (const Node& node : local.nodes()) {
    const Value& value = local.value(node.outputs[0]);
    if (node.phase != Phase::kForward || !IsActivation(value) || node.op->collective) continue;
    if (node.op->name != "layer_norm" && node.op->name != "add") continue;
    EXPECT_EQ(value.sharding->dims[1], tp) << value.name;
    ++cut;
  }
  EXPECT_GE(cut, 2 * TinyGpt().config.layers + 1);
}

TEST(ReadingTest, SeqOnEveryValueWithSeq) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, true, 0));
  const int head = static_cast<int>(TinyGpt().config.layers);
  EXPECT_EQ(
      KindsOf(CollectivesOf(local, Phase::kForward, head)),
      (CollectiveTable{{"all-gather tp", 1}, {"all-reduce tp", 2}, {"all-reduce-max tp", 1}}));
}

TEST(ReadingTest, DimsOfAParameterGradientNotClosed) {
  const TinyModel model = TinyGpt();
  const Graph local = LocalGraph(model, ConfigOf(2, 1, true, 0));
  // dY for the word table alone, which has to see all tokens; the position table's gradient stays
  // owed and is paid once a step.
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kBackward, kEmbeddingLayer)),
            (CollectiveTable{{"all-gather tp", 1}}));
  const Sharding& position = local.sharding(local.FindValue("embedding.position/grad"));
  EXPECT_EQ(position.sum, local.mesh().Find("tp").AsSet());
  EXPECT_TRUE(position.SplitAxes().empty());
}

TEST(ReadingTest, CollectivesSharedBetweenForwardAndBackward) {
  const Graph local = LocalGraph(TinyLlama(), ConfigOf(2, 1, true, 0));
  for (const Node& node : local.nodes()) {
    if (node.phase != Phase::kBackward) continue;
    for (ValueId id : node.inputs) {
      const NodeId producer = local.value(id).producer;
      if (producer == kNone || local.node(producer).phase != Phase::kForward) continue;
      EXPECT_NE(local.node(producer).op->name, "all_gather") << local.value(id).name;
    }
  }
  EXPECT_EQ(LayerKinds(local, Phase::kBackward)["all-gather tp"], 4);
}

TEST(ReadingTest, NormsSquareReadsTheOwedGradientUnderZero) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(1, 2, false, 1));
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kUpdate, kNoLayer)),
            (CollectiveTable{{"reduce-scatter dp", 36}, {"all-reduce dp", 2}}));
  // The tied table is gathered for the embedding and for the head.
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kPrepare, kNoLayer)),
            (CollectiveTable{{"all-gather dp", 37}}));
}

TEST(ReadingTest, ZeroByTensorDim) {
  TinyModel model = TinyGpt();
  model.batch = 6;
  // 3 divides no dim of any parameter but the mlp's.
  const Graph local = LocalGraph(model, ConfigOf(1, 3, false, 1));
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kUpdate, kNoLayer)),
            (CollectiveTable{{"reduce-scatter dp", 36}, {"all-reduce dp", 2}}));
  // The tied table is gathered for the embedding and for the head.
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kPrepare, kNoLayer)),
            (CollectiveTable{{"all-gather dp", 37}}));
}

TEST(ReadingTest, NestedAdds) {
  // x + a + m with a bias each, written as sums of two.
  const auto nested = [](ModelBuilder& b, Tensor x) {
    const Tensor a =
        Projected(b, "a.down", Projected(b, "a.up", x, "embed -> mlp", {}), "mlp -> embed", {});
    const Tensor m =
        Projected(b, "m.down", Projected(b, "m.up", x, "embed -> mlp", {}), "mlp -> embed", {});
    return Add(b, {Add(b, {x, a}), m});
  };
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(nested), ConfigOf(2, 1, false, 0)), Phase::kForward),
            (CollectiveTable{{"all-reduce tp", 1}}));
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(nested), ConfigOf(2, 1, true, 0)), Phase::kForward),
            (CollectiveTable{{"all-gather tp", 1}, {"reduce-scatter tp", 1}}));
}

// A row-parallel bias is added behind the reduction: its operand owes nothing.
TEST(ReadingTest, RowParallelBiasBeforeTheReduction) {
  const Graph local = LocalOf(OneLayer(TwoProducts), ConfigOf(2, 1, false, 0));
  int sums = 0;
  for (const Node& node : local.nodes()) {
    const ValueId bias = local.FindValue("layers.0.down.bias");
    if (node.op->name != "add" || node.inputs.back() != bias) continue;
    ++sums;
    for (ValueId id : node.inputs) EXPECT_TRUE(local.sharding(id).Owed().empty());
  }
  EXPECT_EQ(sums, 1);
}

TEST(ReadingTest, KvHeadsWholeOnOneTpAxis) {
  const TinyModel model = TinyLlama();
  const ParallelConfig parallel = ConfigOf(4, 1, false, 0);
  // With sub-axes no rank sees another's heads: nothing but the two all-reduces.
  EXPECT_EQ(LayerKinds(LocalGraph(model, parallel), Phase::kForward),
            (CollectiveTable{{"all-reduce tp", 2}}));
  // Without, q would have to be gathered: refused, not replicated.
  const Mesh mesh = *Mesh::Create({{"tp", 4}});
  Strategy whole;
  whole.rows.push_back({{}, {{"heads", mesh.Find("tp")}}});
  whole.gathers = {{"heads", GatherTaken::kError}};
  const auto attention = [](ModelBuilder& b, Tensor x) { return Attention(b, "attention", x, x); };
  const absl::StatusOr<Graph> local = LocalOf(OneLayer(attention), mesh, whole);
  ASSERT_FALSE(local.ok());
  EXPECT_TRUE(absl::StrContains(local.status().message(), "heads")) << local.status();
  EXPECT_TRUE(absl::StrContains(local.status().message(), "[shard_c1]")) << local.status();
}

// Neither divides the other: no number of ranks of tp shares 3 kv heads evenly.
TEST(ReadingTest, KvHeadsThatTpCannotShareAreAnError) {
  const auto attention = [](ModelBuilder& b, Tensor x) { return Attention(b, "attention", x, x); };
  const ParallelConfig parallel = ConfigOf(2, 1, false, 0);
  ModelBuilder b("odd", {{4, "batch"},
                         {8, "seq"},
                         {16, "embed"},
                         {6, "heads"},
                         {3, "kv_heads"},
                         {4, "head_dim"},
                         {13, "vocab"}});
  Tensor x = Embedding(b, "word", b.Tokens(), "vocab embed");
  b.Loss("loss", b.Op("total", {attention(b, x)}));
  b.Report("count", b.Op("total", {b.Weights()}));
  const Graph logical = Must(std::move(b).Finish());
  const MeshStrategy bound = Must(BindStrategy(DefaultStrategy(), parallel, SizesOf(logical)));
  const absl::StatusOr<Graph> local = LocalOf(logical, bound.mesh, bound.strategy);
  ASSERT_FALSE(local.ok());
  EXPECT_TRUE(absl::StrContains(local.status().message(), "[shard_c1]")) << local.status();
}

TEST(ReadingTest, KvHeadsDividedInColumns) {
  const Graph local = LocalGraph(TinyLlama(), ConfigOf(4, 1, false, 0));
  const AxisList kv = {local.mesh().FindAtomic("tp.0")};
  for (const char* name : {"layers.0.attention.k", "layers.0.attention.v"}) {
    const ValueId id = local.FindValue(name);
    EXPECT_EQ(local.sharding(id).dims, (std::vector<AxisList>{{}, kv, {}})) << name;
    EXPECT_EQ(local.local_shape(id), (std::vector<int64_t>{16, 1, 4})) << name;
  }
  // Whole heads everywhere: no head_dim is cut, and nothing is gathered.
  for (const Value& value : local.values()) {
    for (size_t d = 0; d < value.type.dims.size(); ++d) {
      if (value.type.dims[d].name != "head_dim") continue;
      EXPECT_TRUE(value.sharding->dims[d].empty()) << value.name;
    }
  }
  EXPECT_EQ(LayerKinds(local, Phase::kForward).count("all-gather tp"), 0u);
}

// Storage axes never claim: with optimizer state in pieces, every layer communicates as without.
TEST(ReadingTest, StorageAxesThatClaim) {
  TinyModel model = TinyLlama();
  const Graph stored = LocalGraph(model, ConfigOf(2, 2, true, 1));
  const Graph plain = LocalGraph(model, ConfigOf(2, 2, true, 0));
  EXPECT_EQ(TableOf(CollectivesOfPasses(stored)), TableOf(CollectivesOfPasses(plain)));
  EXPECT_EQ(CountOf(stored, "all_to_all"), 0);
  const AxisList dp = stored.mesh().Find("dp");
  int states = 0;
  for (const GraphInput& input : stored.inputs()) {
    if (input.kind != InputKind::kState) continue;
    ++states;
    EXPECT_EQ(stored.sharding(input.value).storage, dp);
    EXPECT_FALSE(stored.sharding(input.value).SplitAxes().Intersects(dp.AsSet()));
  }
  EXPECT_EQ(states, 2 * 21);
}

// A stop-gradient's backward that is not removed would be one all-reduce more in the head.
TEST(ReadingTest, MaximumWithABackward) {
  const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, false, 0));
  const int head = static_cast<int>(TinyGpt().config.layers);
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kBackward, head)),
            (CollectiveTable{{"all-reduce tp", 1}}));
  EXPECT_EQ(CountOf(local, "stop_gradient"), 0);
}

}  // namespace
}  // namespace mgc
