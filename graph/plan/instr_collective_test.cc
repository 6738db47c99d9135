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

  InstrCollective Of(const Instr& start) const {
    return CollectiveOf(mesh_, stages_, segment_, start);
  }

  Mesh mesh_;
  const std::vector<StagePlace> stages_ = {{0, 0}, {1, 0}, {2, 0}};
  Segment segment_;
};

TEST_F(InstrCollectiveTest, Gather) {
  const InstrCollective made = Of(Start("all_gather", {4}, {5}));
  EXPECT_EQ(made.kind(), CollectiveKind::kAllGather);
  EXPECT_EQ(made.axes(), AxisSet({0}));
  EXPECT_EQ(made.parts[0].dim, 0);
  EXPECT_EQ(made.ranks, 2);
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4);  // of the result, the larger buffer
  EXPECT_EQ(made.label, "f");
  EXPECT_TRUE(made.classes.empty());
  EXPECT_EQ(made.group, "tp");
}

TEST_F(InstrCollectiveTest, BucketAddsThePayloadsOfItsParts) {
  const InstrCollective made = Of(Start("all_reduce", {0, 2}, {1, 3}));
  ASSERT_EQ(made.parts.size(), 2u);
  EXPECT_EQ(made.parts[1].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(made.parts[1].axes.AsSet(), made.axes());
  // 3 counts in pieces of 2 over dp.
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4 + 2 * 8);
}

TEST_F(InstrCollectiveTest, SeveralAxes) {
  const InstrCollective made = Of(Start("all_reduce", {6}, {5}));
  EXPECT_EQ(made.ranks, 4);
  EXPECT_EQ(made.group, mesh_.GroupName(AxisSet({0, 1})));
}

// Its slots say nothing: operand and result have one sharding.
TEST_F(InstrCollectiveTest, JoiningTheEnds) {
  Instr start = Start("all_reduce", {1}, {1});
  EXPECT_FALSE(JoinsClasses(start));
  EXPECT_FALSE(CollectiveOfPart(segment_, start, 0).ok());
  SetJoinsEnds(&start);
  EXPECT_TRUE(JoinsClasses(start));
  EXPECT_EQ(start.attrs.Text("group"), "embedding");
  const InstrCollective made = Of(start);
  EXPECT_EQ(made.classes, (std::vector<int>{0, 2}));
  EXPECT_EQ(made.kind(), CollectiveKind::kAllReduce);
  EXPECT_EQ(made.axes(), AxisSet({2}));
  EXPECT_EQ(made.ranks, 2);  // of the 3 along pp
  EXPECT_EQ(made.payload_bytes, 10 * 8 * 4);
  EXPECT_EQ(made.group, "embedding");
}

TEST_F(InstrCollectiveTest, JoiningSomeClasses) {
  Instr start = Start("all_reduce", {1}, {1});
  SetJoinedClasses({1, 2}, stages_, &start);
  EXPECT_EQ(start.attrs.Ints("classes"), (std::vector<int64_t>{1, 2}));
  const InstrCollective made = Of(start);
  EXPECT_EQ(made.classes, (std::vector<int>{1, 2}));
  EXPECT_EQ(made.axes(), AxisSet({2}));
  EXPECT_EQ(made.ranks, 2);
  EXPECT_EQ(made.group, "pp:1,2");
  SetJoinedClasses({0, 1, 2}, stages_, &start);
  EXPECT_EQ(Of(start).ranks, 3);
  // The ends have one form.
  SetJoinedClasses({0, 2}, stages_, &start);
  EXPECT_EQ(start.attrs.Text("group"), "embedding");
}

TEST_F(InstrCollectiveTest, EndsAreWhereTheStagesAre) {
  EXPECT_EQ(EndClasses({}), std::vector<int>());
  EXPECT_EQ(EndClasses({{2, 0}, {1, 0}, {0, 0}}), (std::vector<int>{0, 2}));
  EXPECT_EQ(EndClasses({{0, 0}, {1, 0}, {1, 1}, {0, 1}}), std::vector<int>{0});
}

TEST_F(InstrCollectiveTest, OtherGroupsJoinNothing) {
  Instr start = Start("all_reduce", {1}, {1});
  using List = std::vector<int64_t>;
  const std::vector<Attrs> wrong = {
      {{"group", std::string("tp")}},
      {{"group", int64_t{3}}},
      {{"classes", List{1}}},
      {{"classes", List{2, 1}}},
      {{"classes", List{1, 3}}},
      {{"classes", List{0, 2}}, {"group", std::string("embedding")}},
  };
  for (const Attrs& attrs : wrong) {
    start.attrs = attrs;
    EXPECT_TRUE(JoinsClasses(start));
    EXPECT_FALSE(JoinedClasses(mesh_, stages_, start).ok());
  }
  SetJoinsEnds(&start);
  EXPECT_FALSE(JoinedClasses(*Mesh::Create({{"tp", 2}}), stages_, start).ok());
  start.kind = InstrKind::kCompute;
  EXPECT_FALSE(JoinsClasses(start));
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
