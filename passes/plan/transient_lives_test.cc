#include "passes/plan/transient_lives.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// A segment whose slots are numbered as they come; formal 0 is the transient region.
class SegmentMaker {
 public:
  int Slot(int64_t bytes, int formal = 0) {
    mgc::Slot slot;
    slot.bytes = bytes;
    slot.formal = formal;
    segment_.slots.push_back(slot);
    return static_cast<int>(segment_.slots.size()) - 1;
  }
  void Run(const char* op, std::vector<int> inputs, std::vector<int> outputs) {
    Add(InstrKind::kCompute, op, std::move(inputs), std::move(outputs), -1);
  }
  // Returns the collective's number.
  int Start(const char* op, std::vector<int> inputs, std::vector<int> outputs) {
    Add(InstrKind::kStart, op, std::move(inputs), std::move(outputs), segment_.num_collectives);
    return segment_.num_collectives++;
  }
  void Wait(int collective) { Add(InstrKind::kWait, nullptr, {}, {}, collective); }

  const Segment& segment() const { return segment_; }

 private:
  void Add(InstrKind kind, const char* op, std::vector<int> inputs, std::vector<int> outputs,
           int collective) {
    Instr instr;
    instr.kind = kind;
    instr.op = op == nullptr ? nullptr : FindOp(op);
    instr.inputs = std::move(inputs);
    instr.outputs = std::move(outputs);
    instr.collective = collective;
    segment_.instrs.push_back(instr);
  }

  Segment segment_;
};

void ExpectLife(const TransientLife& life, const std::vector<int>& slots, int begin, int end,
                int64_t bytes) {
  EXPECT_EQ(life.slots, slots);
  EXPECT_EQ(life.alive.begin, begin);
  EXPECT_EQ(life.alive.end, end);
  EXPECT_EQ(life.alive.bytes, bytes);
}

TEST(TransientLivesTest, AResultTakesThePlaceOfADeadOperand) {
  SegmentMaker make;
  const int x = make.Slot(256, 1), w = make.Slot(256, 1);
  const int a = make.Slot(100), b = make.Slot(100), c = make.Slot(100);
  make.Run("matmul", {x, w}, {a});
  make.Run("gelu", {a}, {b});
  make.Run("matmul", {b, w}, {c});
  const std::vector<TransientLife> lives = TransientLives(make.segment());
  ASSERT_EQ(lives.size(), 2u);
  ExpectLife(lives[0], {a, b}, 0, 2, 128);
  ExpectLife(lives[1], {c}, 2, 2, 128);
}

TEST(TransientLivesTest, NotOfOneThatIsReadLaterOrTwiceOrIsOfAnotherSize) {
  SegmentMaker make;
  const int a = make.Slot(64), b = make.Slot(64), c = make.Slot(64), d = make.Slot(128);
  make.Run("constant", {}, {a});
  make.Run("gelu", {a}, {b});
  make.Run("add", {b, b}, {c});
  make.Run("gelu", {c}, {d});
  make.Run("add", {a, d}, {d});
  const std::vector<TransientLife> lives = TransientLives(make.segment());
  ASSERT_EQ(lives.size(), 4u);
  ExpectLife(lives[0], {a}, 0, 4, 64);
  ExpectLife(lives[1], {b}, 1, 2, 64);
}

// Of several operands the first that is free; one that lies elsewhere gives nothing.
TEST(TransientLivesTest, SeveralResultsTakeDifferentPlaces) {
  SegmentMaker make;
  const int dy = make.Slot(64), gate = make.Slot(64, 1), up = make.Slot(64);
  const int dgate = make.Slot(64), dup = make.Slot(64);
  make.Run("constant", {}, {dy});
  make.Run("constant", {}, {up});
  make.Run("swiglu_grad", {dy, gate, up}, {dgate, dup});
  const std::vector<TransientLife> lives = TransientLives(make.segment());
  ASSERT_EQ(lives.size(), 2u);
  ExpectLife(lives[0], {dy, dgate}, 0, 2, 64);
  ExpectLife(lives[1], {up, dup}, 1, 2, 64);
}

TEST(TransientLivesTest, WhatACollectiveUsesIsInUseUntilItIsWaitedFor) {
  SegmentMaker make;
  const int a = make.Slot(64), b = make.Slot(64), c = make.Slot(64), d = make.Slot(64);
  make.Run("constant", {}, {a});
  const int reduce = make.Start("all_reduce", {a}, {b});
  const int gather = make.Start("reduce_scatter", {b}, {c});
  make.Run("constant", {}, {d});
  make.Wait(reduce);
  make.Wait(gather);
  make.Start("all_reduce", {d}, {d});
  const std::vector<TransientLife> lives = TransientLives(make.segment());
  ASSERT_EQ(lives.size(), 3u);
  ExpectLife(lives[0], {a, b}, 0, 5, 64);  // the pieces of a reduce-scatter move
  ExpectLife(lives[1], {c}, 2, 5, 64);
  ExpectLife(lives[2], {d}, 3, 7, 64);  // nobody waits for the last
}

TEST(TransientLivesTest, WhatACollectiveReadsIsNotOverwrittenBeforeItIsWaitedFor) {
  SegmentMaker make;
  const int a = make.Slot(64), b = make.Slot(64), c = make.Slot(64);
  make.Run("constant", {}, {a});
  const int scatter = make.Start("reduce_scatter", {a}, {b});
  make.Run("gelu", {a}, {c});
  make.Wait(scatter);
  const std::vector<TransientLife> lives = TransientLives(make.segment());
  ASSERT_EQ(lives.size(), 3u);
  ExpectLife(lives[0], {a}, 0, 3, 64);
  ExpectLife(lives[2], {c}, 2, 2, 64);
}

TEST(WorstMomentTest, IsTheFirstWithMostBytes) {
  EXPECT_EQ(WorstMoment({}).at, -1);
  EXPECT_EQ(WorstMoment({}).bytes, 0);
  const LiveMoment worst = WorstMoment({{0, 2, 64}, {2, 3, 128}, {3, 4, 64}, {5, 5, 192}});
  EXPECT_EQ(worst.at, 2);
  EXPECT_EQ(worst.bytes, 192);
}

}  // namespace
}  // namespace mgc
