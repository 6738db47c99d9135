#include "graph/plan/instr_collective.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

// tp 2, dp 2, pp 3: %0 to %1 an all-reduce over tp, %2 to %3 one over dp and tp, %4 to %5 a gather.
class InstrCollectiveTest : public testing::Test {
 protected:
  InstrCollectiveTest() : mesh_(*Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 3}})) {
    const TensorType table{DType::kF32, {{10, ""}, {8, ""}}};
    const TensorType counts{DType::kI64, {{3, ""}}};
    Sharding cut = Sharding::Whole(2);
    cut.dims[0] = {0};
    Sharding stored = Sharding::Whole(1);
    stored.storage = {1};
    Sharding stored_owed = stored;
    stored_owed.sum = {0};
    AddSlot(table, Owed(2, {0}));
    AddSlot(table, Sharding::Whole(2));
    AddSlot(counts, stored_owed);
    AddSlot(counts, stored);
    AddSlot(table, cut);
    AddSlot(table, Sharding::Whole(2));
    AddSlot(table, Owed(2, {0, 1}));
  }

  static Sharding Owed(int dims, AxisList axes) {
    Sharding sharding = Sharding::Whole(dims);
    for (AxisId axis : axes) sharding.sum.Add(axis);
    return sharding;
  }
  void AddSlot(const TensorType& type, const Sharding& sharding) {
    segment_.slots.push_back({"x", type, sharding, 0, 0, 1 << 20});  // room has no part in payload
  }
  static Instr Start(const char* op, std::vector<int> inputs, std::vector<int> outputs) {
    Instr start;
    start.kind = InstrKind::kStart;
    start.op = FindOp(op);
    start.inputs = std::move(inputs);
    start.outputs = std::move(outputs);
    start.attrs = {{"label", std::string("f")}};
    return start;
  }

  Mesh mesh_;
  Segment segment_;
};

TEST_F(InstrCollectiveTest, Gather) {
  const InstrCollective made = CollectiveOf(mesh_, segment_, Start("all_gather", {4}, {5}));
  EXPECT_EQ(made.kind(), CollectiveKind::kAllGather);
  EXPECT_EQ(made.axes(), AxisSet({0}));
  EXPECT_EQ(made.parts[0].dim, 0);
  EXPECT_EQ(made.ranks, 2);
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4);  // of the result, the larger buffer
  EXPECT_EQ(made.label, "f");
  EXPECT_FALSE(made.joins_ends);
  EXPECT_EQ(GroupName(made, mesh_), "tp");
}

TEST_F(InstrCollectiveTest, BucketAddsThePayloadsOfItsParts) {
  const InstrCollective made = CollectiveOf(mesh_, segment_, Start("all_reduce", {0, 2}, {1, 3}));
  ASSERT_EQ(made.parts.size(), 2u);
  EXPECT_EQ(made.parts[1].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(made.parts[1].axes.AsSet(), made.axes());
  // 3 counts in pieces of 2 over dp.
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4 + 2 * 8);
}

TEST_F(InstrCollectiveTest, SeveralAxes) {
  const InstrCollective made = CollectiveOf(mesh_, segment_, Start("all_reduce", {6}, {5}));
  EXPECT_EQ(made.ranks, 4);
  EXPECT_EQ(GroupName(made, mesh_), mesh_.GroupName(AxisSet({0, 1})));
}

// Its slots say nothing: operand and result have one sharding.
TEST_F(InstrCollectiveTest, JoiningTheEnds) {
  Instr start = Start("all_reduce", {1}, {1});
  EXPECT_FALSE(JoinsEnds(start));
  EXPECT_FALSE(CollectiveOfPart(segment_, start, 0).ok());
  SetJoinsEnds(&start);
  EXPECT_TRUE(JoinsEnds(start));
  EXPECT_EQ(GroupNamed(start), "embedding");
  const InstrCollective made = CollectiveOf(mesh_, segment_, start);
  EXPECT_TRUE(made.joins_ends);
  EXPECT_EQ(made.kind(), CollectiveKind::kAllReduce);
  EXPECT_EQ(made.axes(), AxisSet({2}));
  EXPECT_EQ(made.ranks, 2);  // of the 3 along pp
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4);
  EXPECT_EQ(GroupName(made, mesh_), "embedding");
}

TEST_F(InstrCollectiveTest, OtherNamesAndKindsJoinNothing) {
  Instr start = Start("all_reduce", {1}, {1});
  start.attrs.Set("group", std::string("tp"));
  EXPECT_EQ(GroupNamed(start), "tp");
  EXPECT_FALSE(JoinsEnds(start));
  start.attrs.Set("group", int64_t{3});
  EXPECT_EQ(GroupNamed(start), "");
  SetJoinsEnds(&start);
  start.kind = InstrKind::kCompute;
  EXPECT_FALSE(JoinsEnds(start));
}

TEST_F(InstrCollectiveTest, PartThatIsNoSingleChange) {
  EXPECT_FALSE(CollectiveOfPart(segment_, Start("all_reduce", {4}, {5}), 0).ok());
  EXPECT_TRUE(CollectiveOfPart(segment_, Start("shard_slice", {5}, {4}), 0).ok());
}

TEST(RingWireBytesTest, AreWhatARankSends) {
  EXPECT_EQ(RingWireBytes(CollectiveKind::kAllReduce, 1024, 4), 1536);
  EXPECT_EQ(RingWireBytes(CollectiveKind::kAllReduceMax, 6, 3), 8);
  EXPECT_EQ(RingWireBytes(CollectiveKind::kAllGather, 1024, 4), 768);
  EXPECT_EQ(RingWireBytes(CollectiveKind::kReduceScatter, 10, 3), 7);  // 6 2/3
  EXPECT_EQ(RingWireBytes(CollectiveKind::kLift, 10, 3), 0);
  EXPECT_EQ(RingWireBytes(CollectiveKind::kAllReduce, int64_t{1} << 60, 8), 7 * (int64_t{1} << 58));
}

}  // namespace
}  // namespace mgc
