#include "passes/plan/delay_reductions.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/pipeline.h"

namespace mgc {
namespace {

// Segments by number: a backward that computes for 2 units, sums over tp, and computes for 2 units;
// one that computes for 8 units; a reduction over dp.
enum SegmentId { kCutBackward, kWholeBackward, kReduction };

class DelayReductionsTest : public testing::Test {
 protected:
  DelayReductionsTest() : machine_(MachineOf(kEven)), mesh_(*Mesh::Create({{"tp", 2}, {"dp", 2}})) {
    segments_.resize(3);
    AddOps(2, &segments_[kCutBackward]);
    AddSum("tp", 16, true, &segments_[kCutBackward]);
    AddOps(2, &segments_[kCutBackward]);
    AddOps(8, &segments_[kWholeBackward]);
  }

  // Of `B3 R3 W2 R2`: backwards of the two kinds and reductions, with their layers.
  std::string After(const std::vector<std::string>& words, int64_t reduced_bytes) {
    segments_[kReduction] = Segment();
    AddSum("dp", reduced_bytes / 4, false, &segments_[kReduction]);
    StagedChunk chunk;
    for (const std::string& word : words) {
      const int segment = word[0] == 'B'   ? kCutBackward
                          : word[0] == 'W' ? kWholeBackward
                                           : kReduction;
      chunk.last_backward.push_back({segment, word[1] - '0', {}});
    }
    SegmentTimer timer({mesh_, machine_, stages_}, segments_);
    DelayReductions(0, &timer, &chunk);
    return absl::StrJoin(chunk.last_backward, " ", [](std::string* out, const StagedCall& call) {
      absl::StrAppend(out, std::string(1, "BWR"[call.segment]), call.layer);
    });
  }

  Machine machine_;

 private:
  static int AddSlot(int64_t elements, AxisSet owed, Segment* segment) {
    Slot slot;
    slot.type = {DType::kF32, {{elements, ""}}};
    slot.sharding = Sharding::Whole(1);
    slot.sharding.sum = owed;
    slot.bytes = 4 * elements;
    segment->slots.push_back(slot);
    return static_cast<int>(segment->slots.size()) - 1;
  }

  static void AddOps(int units, Segment* segment) {
    for (int i = 0; i < units; ++i) {
      Instr instr;
      instr.op = FindOp("reshard");
      instr.inputs = {AddSlot(16, {}, segment)};
      instr.outputs = {AddSlot(16, {}, segment)};
      segment->instrs.push_back(instr);
    }
  }

  void AddSum(const std::string& axis, int64_t elements, bool waits, Segment* segment) const {
    Instr instr;
    instr.kind = InstrKind::kStart;
    instr.op = FindOp("all_reduce");
    instr.inputs = {AddSlot(elements, mesh_.Find(axis).AsSet(), segment)};
    instr.outputs = {AddSlot(elements, {}, segment)};
    instr.collective = segment->num_collectives++;
    segment->instrs.push_back(instr);
    instr.kind = InstrKind::kWait;
    if (waits) segment->instrs.push_back(instr);
  }

  const Mesh mesh_;
  const std::vector<StagePlace> stages_ = {{0, 0}};
  std::vector<Segment> segments_;
};

TEST_F(DelayReductionsTest, WhatFitsBeforeTheNextSumStaysWhereItIs) {
  EXPECT_EQ(After({"B3", "R3", "B2", "R2", "B1", "R1"}, 400), "B3 R3 B2 R2 B1 R1");
}

TEST_F(DelayReductionsTest, WhatFitsNowhereComesLast) {
  EXPECT_EQ(After({"B3", "R3", "B2", "R2", "B1", "R1"}, 16000), "B3 B2 B1 R3 R2 R1");
}

// Before W1 the next sum is due in 10 units: two of 3.2 units fit, side by side with nothing else.
TEST_F(DelayReductionsTest, TheyGoWhereThereIsRoom) {
  EXPECT_EQ(After({"B3", "R3", "B2", "R2", "W1", "R1", "B0", "R0"}, 3000),
            "B3 B2 R3 R2 W1 B0 R1 R0");
}

// An op takes a year: sums of durations end where no step may take as long.
TEST_F(DelayReductionsTest, CenturiesStayInRange) {
  machine_.op_overhead = 3e7;
  EXPECT_EQ(After({"W3", "R3", "B2", "R2", "W1", "R1"}, 400), "W3 R3 B2 R2 W1 R1");
  machine_.op_overhead = 1e9;
  EXPECT_EQ(After({"W3", "R3", "W2", "R2", "W1", "R1"}, 400), "W3 R3 W2 R2 W1 R1");
}

TEST_F(DelayReductionsTest, WithoutOtherCollectivesNoneWaits) {
  EXPECT_EQ(After({"W3", "R3", "W2", "R2", "W1", "R1"}, 16000), "W3 R3 W2 R2 W1 R1");
}

}  // namespace
}  // namespace mgc
