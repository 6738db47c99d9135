#include "passes/graph/shard/partition.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/eval/eval.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// tp of 6 in two sub-axes beside dp of 2.
Mesh TestMesh() {
  const absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp.1", 2}, {"tp.0", 3}, {"dp", 2}});
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return *mesh;
}

Sharding Parse(const std::string& text) {
  const absl::StatusOr<Sharding> sharding = ParseSharding(text, TestMesh());
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  return *sharding;
}

// `all_reduce -,-; shard_slice dp,-`
std::string Steps(const std::string& from, const std::string& to, int64_t size = 36) {
  const Mesh mesh = TestMesh();
  const TensorType type = {DType::kF32, {{size, ""}, {size, ""}}};
  std::vector<std::string> steps;
  for (const ShardingStep& step : StepsBetween(Parse(from), Parse(to), type, mesh)) {
    steps.push_back(absl::StrCat(step.op, " ", ToString(step.result, mesh)));
  }
  return absl::StrJoin(steps, "; ");
}

TEST(StepsBetweenTest, OneStepForOneChange) {
  EXPECT_EQ(Steps("dp,tp", "dp,tp"), "");
  EXPECT_EQ(Steps("-,-+dp", "-,-"), "all_reduce @m[-,-]");
  EXPECT_EQ(Steps("-,-^dp", "-,-"), "all_reduce @m[-,-]");
  EXPECT_EQ(Steps("-,-+dp", "dp,-"), "reduce_scatter @m[dp,-]");
  EXPECT_EQ(Steps("dp,-", "-,-"), "all_gather @m[-,-]");
  EXPECT_EQ(Steps("dp,-", "-,dp"), "all_to_all @m[-,dp]");
  EXPECT_EQ(Steps("-,-", "-,dp"), "shard_slice @m[-,dp]");
  EXPECT_EQ(Steps("-,-", "-,-+dp"), "lift @m[-,-]+dp");
  EXPECT_EQ(Steps("-,-+dp", "-,-/dp"), "reduce_scatter @m[-,-]/dp");
  EXPECT_EQ(Steps("-,-/dp", "-,-"), "all_gather @m[-,-]");
  EXPECT_EQ(Steps("-,-", "-,-/dp"), "shard_slice @m[-,-]/dp");
}

// All axes still owed are paid at once, and several axes of one dim move together.
TEST(StepsBetweenTest, AxesGoTogether) {
  EXPECT_EQ(Steps("-,-+tp*dp", "-,-"), "all_reduce @m[-,-]");
  EXPECT_EQ(Steps("-,-+tp", "tp,-"), "reduce_scatter @m[tp.0*tp.1,-]");
  EXPECT_EQ(Steps("tp,-", "-,tp"), "all_to_all @m[-,tp.0*tp.1]");
  EXPECT_EQ(Steps("tp,-", "-,-"), "all_gather @m[-,-]");
  EXPECT_EQ(Steps("tp,-", "tp.0,-"), "all_gather @m[tp.0,-]");
  EXPECT_EQ(Steps("tp.0,-", "tp,-"), "shard_slice @m[tp.0*tp.1,-]");
}

// An axis enters a dim as its most minor one; where it would have to stand before another, the
// other is gathered first.
TEST(StepsBetweenTest, AxesEnterAsTheMostMinor) {
  EXPECT_EQ(Steps("dp,tp.0", "dp*tp.0,-"), "all_to_all @m[dp*tp.0,-]");
  EXPECT_EQ(Steps("dp,tp.0", "tp.0*dp,-"),
            "all_gather @m[-,tp.0]; all_gather @m[-,-]; shard_slice @m[tp.0*dp,-]");
  EXPECT_EQ(Steps("dp*tp.0,-", "tp.0,-"), "all_gather @m[-,-]; shard_slice @m[tp.0,-]");
  EXPECT_EQ(Steps("tp.0,-+dp", "dp*tp.0,-"),
            "all_reduce @m[tp.0,-]; all_gather @m[-,-]; shard_slice @m[dp*tp.0,-]");
}

// The rule "convert": reduce-scatter, one all-reduce, all-to-all, all-gather, slice; a lift last.
TEST(StepsBetweenTest, Order) {
  EXPECT_EQ(Steps("-,-+tp*dp", "dp,-"), "reduce_scatter @m[dp,-]+tp.1*tp.0; all_reduce @m[dp,-]");
  EXPECT_EQ(Steps("tp.0,-+dp", "dp,tp.0"),
            "all_reduce @m[tp.0,-]; all_to_all @m[-,tp.0]; shard_slice @m[dp,tp.0]");
  EXPECT_EQ(Steps("-,tp.0+dp", "dp,-"), "reduce_scatter @m[dp,tp.0]; all_gather @m[dp,-]");
  EXPECT_EQ(Steps("tp.0,tp.1", "-,dp"),
            "all_gather @m[-,tp.1]; all_gather @m[-,-]; shard_slice @m[-,dp]");
  EXPECT_EQ(Steps("tp.0,-+dp", "-,-+dp*tp.0"), "all_gather @m[-,-]+dp; lift @m[-,-]+tp.0*dp");
  EXPECT_EQ(Steps("-,-+tp*dp", "-,-/dp"),
            "reduce_scatter @m[-,-]+tp.1*tp.0/dp; all_reduce @m[-,-]/dp");
}

TEST(StepsBetweenTest, WhatStaysOwedIsLeftAlone) {
  EXPECT_EQ(Steps("-,-+tp*dp", "-,-+tp"), "all_reduce @m[-,-]+tp.1*tp.0");
  EXPECT_EQ(Steps("-,-+tp*dp", "-,-+tp*dp"), "");
}

// A flat piece is a piece of one tile: it is cut only when the tile's dims are as wanted, and put
// together before they change.
TEST(StepsBetweenTest, FlatPiecesAreOfTheWantedDims) {
  EXPECT_EQ(Steps("tp.0,-+dp", "-,-/dp"),
            "all_reduce @m[tp.0,-]; all_gather @m[-,-]; shard_slice @m[-,-]/dp");
  EXPECT_EQ(Steps("tp.0,-/dp", "-,-/dp"),
            "all_gather @m[tp.0,-]; all_gather @m[-,-]; shard_slice @m[-,-]/dp");
  EXPECT_EQ(Steps("-,-+tp.0/dp", "tp.0,-/dp"),
            "all_gather @m[-,-]+tp.0; reduce_scatter @m[tp.0,-]; shard_slice @m[tp.0,-]/dp");
  EXPECT_EQ(Steps("tp.0,-+dp", "tp.0,-/dp"), "reduce_scatter @m[tp.0,-]/dp");
}

// Pieces of a dim of 10 over tp, room for 2 each, are no parts of its pieces over tp.0, room for 4.
TEST(StepsBetweenTest, UnevenPiecesDoNotNest) {
  EXPECT_EQ(Steps("tp,-", "-,-", 10), "all_gather @m[-,-]");
  EXPECT_EQ(Steps("-,-", "tp,-", 10), "shard_slice @m[tp.0*tp.1,-]");
  EXPECT_EQ(Steps("-,-+tp", "tp,-", 10), "reduce_scatter @m[tp.0*tp.1,-]");
  EXPECT_EQ(Steps("tp,-", "-,tp", 10), "all_to_all @m[-,tp.0*tp.1]");
  EXPECT_EQ(Steps("tp,-", "tp.0,-", 10), "all_gather @m[-,-]; shard_slice @m[tp.0,-]");
  EXPECT_EQ(Steps("tp.0,-", "tp,-", 10), "all_gather @m[-,-]; shard_slice @m[tp.0*tp.1,-]");
  EXPECT_EQ(Steps("tp.0,-+tp.1", "tp,-", 10),
            "all_reduce @m[tp.0,-]; all_gather @m[-,-]; shard_slice @m[tp.0*tp.1,-]");
  EXPECT_EQ(Steps("tp,-", "tp.0,tp.1", 10),
            "all_gather @m[-,-]; shard_slice @m[tp.0,-]; shard_slice @m[tp.0,tp.1]");
  EXPECT_EQ(Steps("tp,-", "tp.0,-"), "all_gather @m[tp.0,-]");
}

// --- All pairs of shardings, by evaluation on all ranks
// ---------------------------------------------

class RandomShardings {
 public:
  explicit RandomShardings(uint32_t seed) : random_(seed) {}

  // A value as a producer may leave it: cut, and owing a sum or a maximum over other axes.
  Sharding From(bool maximum) {
    Sharding sharding = Sharding::Whole(2);
    for (AxisId axis : Shuffled()) {
      const int place = Draw(4);
      if (place < 2) sharding.dims[place].push_back(axis);
      if (place == 2) (maximum ? sharding.max : sharding.sum).Add(axis);
    }
    return sharding;
  }

  // As a consumer may want it; a sum may be owed where none was.
  Sharding To(bool maximum, bool stored) {
    Sharding sharding = Sharding::Whole(2);
    for (AxisId axis : Shuffled()) {
      const int place = Draw(5);
      if (place < 2) sharding.dims[place].push_back(axis);
      if (place == 2 && !maximum) sharding.sum.Add(axis);
      if (place == 3 && stored) sharding.storage.push_back(axis);
    }
    return sharding;
  }

 private:
  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::vector<AxisId> Shuffled() {
    std::vector<AxisId> axes = {0, 1, 2};
    for (int i = 2; i > 0; --i) std::swap(axes[i], axes[Draw(i + 1)]);
    return axes;
  }

  std::mt19937 random_;
};

// What a value goes through: as produced, in between, as wanted.
struct Journey {
  Sharding from;
  Sharding between;
  Sharding to;
  int64_t size = 12;  // of its two dims, and of the one that is reduced
};

// %x = reduce(%z) leaves a sum or maximum owed over the axes that cut the reduced dim, so that
// every rank holds another term; %m = reshard(%x), %y = reshard(%m).
Graph ReshardGraph(const Journey& journey, bool maximum) {
  const Sharding& from = journey.from;
  const Sharding& to = journey.to;
  GraphBuilder builder("reshard", Level::kSharded);
  builder.set_mesh(TestMesh());
  const Dim dim{journey.size, ""};
  const TensorType type{DType::kF32, {dim, dim}};
  const TensorType terms{DType::kF32, {dim, dim, dim}};
  Sharding split = Sharding::Whole(3);
  for (AxisId axis : from.Owed()) split.dims[0].push_back(axis);
  split.dims[1] = from.dims[0];
  split.dims[2] = from.dims[1];
  const ValueId z = builder.AddInput("z", terms, InputKind::kData, {}, split);
  builder.AddInput("wanted", type, InputKind::kData, {}, [&] {
    Sharding paid = to;
    paid.sum = AxisSet();
    return paid;
  }());
  Node reduce;
  reduce.op = FindOp(maximum ? "reduce_max" : "reduce_sum");
  reduce.attrs = {{"dims", std::vector<int64_t>{0}}};
  reduce.inputs = {z};
  const NodeId made = builder.AppendRaw(reduce, {{"x", type, from, kNone, kNone}});
  Node reshard;
  reshard.op = FindOp("reshard");
  reshard.inputs = {builder.graph().node(made).outputs[0]};
  const NodeId middle = builder.AppendRaw(reshard, {{"m", type, journey.between, kNone, kNone}});
  reshard.inputs = {builder.graph().node(middle).outputs[0]};
  builder.AppendRaw(reshard, {{"y", type, to, kNone, kNone}});
  return std::move(builder).Finish();
}

// Small whole numbers: sums are exact in any order.
HostTensor<double> Terms(uint32_t seed, int64_t size) {
  std::mt19937 random(seed);
  HostTensor<double> z = HostTensor<double>::Make({size, size, size}, false);
  for (double& entry : z.real) entry = static_cast<double>(random() % 1000) - 500.0;
  return z;
}

HostTensor<double> Reduced(const HostTensor<double>& z, bool maximum) {
  HostTensor<double> x = HostTensor<double>::Make({z.dim(1), z.dim(2)}, false);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.real[i] = z.real[i];
    for (int64_t k = 1; k < z.dim(0); ++k) {
      const double term = z.real[k * x.size() + i];
      x.real[i] = maximum ? std::max(x.real[i], term) : x.real[i] + term;
    }
  }
  return x;
}

// Every rank ends with its tile of the whole; of what is still owed, with a term of it.
void ExpectRightTiles(const Journey& journey, bool maximum, uint32_t seed) {
  const Mesh mesh = TestMesh();
  const Sharding& to = journey.to;
  SCOPED_TRACE(absl::StrCat(ToString(journey.from, mesh), " -> ", ToString(journey.between, mesh),
                            " -> ", ToString(to, mesh), " of ", journey.size));
  const Graph local = Partition(ReshardGraph(journey, maximum));
  ASSERT_TRUE(CheckGraph(local).ok()) << CheckGraph(local);
  GraphEvaluator<DoubleModel> eval(local, DoubleModel(), 0);
  const HostTensor<double> z = Terms(seed, journey.size);
  const HostTensor<double> x = Reduced(z, maximum);
  eval.Set(local.FindValue("z"), z);
  eval.Set(local.FindValue("wanted"), x);
  const Phase forward[] = {Phase::kForward};
  eval.Run(forward, 0);
  ValueId y = local.FindValue("y");  // an equal sharding takes no node
  for (const char* name : {"m", "x"}) y = y == kNone ? local.FindValue(name) : y;
  ASSERT_EQ(local.sharding(y), to);
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const HostTensor<double>& wanted = eval.Tile(local.FindValue("wanted"), rank);
    HostTensor<double> sum = HostTensor<double>::Make(wanted.shape, false);
    for (int64_t member : mesh.Group(rank, to.sum)) {
      const HostTensor<double>& tile = eval.Tile(y, member);
      ASSERT_EQ(tile.shape, wanted.shape);
      for (int64_t i = 0; i < sum.size(); ++i) sum.real[i] += tile.real[i];
    }
    ASSERT_EQ(sum.real, wanted.real) << "rank " << rank;
  }
}

TEST(PartitionTest, EveryRankEndsWithItsTile) {
  constexpr uint32_t kSeed = 20240611;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  RandomShardings shardings(kSeed);
  for (uint32_t trial = 0; trial < 600; ++trial) {
    const bool maximum = trial % 4 == 3;
    const Sharding from = shardings.From(maximum);
    const Sharding between = shardings.To(maximum, true);
    const int64_t size = trial % 3 == 2 ? 10 : trial % 3 == 1 ? 5 : 12;  // 12: all cuts are even
    ExpectRightTiles({from, between, shardings.To(maximum, trial % 2 == 0), size}, maximum, trial);
    if (HasFatalFailure()) return;
  }
}

// Sums and tiles of odd sizes, in pieces over all axes and back.
TEST(PartitionTest, FlatPiecesArePaddedAndGathered) {
  GraphBuilder builder("flat", Level::kSharded);
  builder.set_mesh(TestMesh());
  const TensorType type{DType::kF32, {{5, ""}, {7, ""}}};
  Sharding stored = Sharding::Whole(2);
  stored.storage = {2, 0, 1};
  const ValueId x = builder.AddInput("x", type, InputKind::kData, {}, Sharding::Whole(2));
  Node node;
  node.op = FindOp("reshard");
  node.inputs = {x};
  const NodeId cut = builder.AppendRaw(node, {{"cut", type, stored, kNone, kNone}});
  node.inputs = {builder.graph().node(cut).outputs[0]};
  builder.AppendRaw(node, {{"whole", type, Sharding::Whole(2), kNone, kNone}});
  const Graph local = Partition(std::move(builder).Finish());
  GraphEvaluator<DoubleModel> eval(local, DoubleModel(), 0);
  HostTensor<double> values = HostTensor<double>::Make({5, 7}, false);
  for (int64_t i = 0; i < values.size(); ++i) values.real[i] = static_cast<double>(i + 1);
  eval.Set(local.FindValue("x"), values);
  const Phase forward[] = {Phase::kForward};
  eval.Run(forward, 0);
  EXPECT_EQ(eval.Tile(local.FindValue("cut"), 0).shape, (std::vector<int64_t>{3}));  // 35 over 12
  for (int64_t rank = 0; rank < 12; ++rank) {
    EXPECT_EQ(eval.Tile(local.FindValue("whole"), rank).real, values.real) << rank;
  }
}

}  // namespace
}  // namespace mgc
