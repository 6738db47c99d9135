#include "graph/verify/memory/memory.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/plan/testing/odd_plan.h"
#include "graph/verify/common/memory_ranges.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string FoundAfter(const TextEdits& edits) {
  const Plan plan = EditedSample(edits);
  Diagnostics findings;
  CheckMemory(plan, &findings);
  return findings.ToString();
}

TEST(MemoryRangesTest, MergedListsAnswerForSingleBytes) {
  const std::vector<Range> merged = Merged({{8, 12}, {0, 4}, {20, 20}, {4, 6}, {9, 10}});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(ToString(merged[0]), "[0, 6)");
  EXPECT_EQ(ToString(merged[1]), "[8, 12)");
  for (int64_t at = -1; at < 22; ++at) {
    const bool inside = (at >= 0 && at < 6) || (at >= 8 && at < 12);
    EXPECT_EQ(Touches(merged, {at, at + 1}), inside) << at;
  }
  EXPECT_FALSE(Touches(merged, {6, 8}));
  EXPECT_TRUE(Touches(merged, {5, 30}));
}

TEST(MemoryTest, ASoundPlanIsProved) { EXPECT_EQ(FoundAfter({}), ""); }

TEST(MemoryTest, StrangePlansAreRefusedWithoutHarm) {
  Diagnostics findings;
  CheckMemory(OddPlan(), &findings);
  EXPECT_TRUE(findings.Has("memory_v1"));
  EXPECT_TRUE(findings.Has("memory_v3"));
}

TEST(MemoryTest, RegionsAreApart) {
  EXPECT_THAT(FoundAfter({{"params 256 grads 128 states 320", "params 256 grads 128 states 256"}}),
              HasSubstr("class 0, training: states of layer, layer 0, [256, 384), overlaps params "
                        "of layer, layer 0, [256, 320) [memory_v1]"));
  EXPECT_THAT(FoundAfter({{"  zero 0 256", "  zero 0 256\n  zero 832 840"}}),
              HasSubstr("every step zeroes [832, 840), which overlaps an inbox or outbox"));
  EXPECT_THAT(FoundAfter({{"  zero 0 256", "  zero 0 264"}}),
              HasSubstr("every step zeroes [0, 264), which overlaps params of layer, layer 0, "
                        "[256, 320) [memory_v1]"));
}

// Of every micro-batch, and a value of the update with all its readers.
TEST(MemoryTest, BlocksAreForTheirFormals) {
  EXPECT_THAT(FoundAfter({{"0F1 frame 576 output 832\n", "0F1 frame 576 output 320\n"},
                          {"0SEND_F1 at 832 bytes 16 peer 1 behind 0 of 0B0",
                           "0SEND_F1 at 320 bytes 16 peer 1 behind 0 of 0B0"}}),
              HasSubstr("class 0, training: an inbox or outbox, [320, 336), overlaps states of "
                        "layer, layer 0, [320, 448) [memory_v2]"));
  EXPECT_THAT(FoundAfter({{"slot %1 \"n.sum\": f64[] @m[] in globals at 64",
                           "slot %1 \"n.sum\": f64[] @m[] in globals at 328"},
                          {"  report \"n\" 64", "  report \"n\" 328"}}),
              HasSubstr("class 0, training: a value of the step, [328, 336), overlaps states of "
                        "layer, layer 0, [320, 448) [memory_v1]"));
  EXPECT_THAT(
      FoundAfter({{"slot %1 \"w/grad.sum\": f32[batch=1,seq=4] @m[-,-] in grads at 64",
                   "slot %1 \"w/grad.sum\": f32[batch=1,seq=4] @m[-,-] in grads at 128"}}),
      HasSubstr("class 0, training: grads of layer, layer 0, [128, 256), are used up to 272 "
                "[memory_v1]"));
}

TEST(MemoryTest, FramesAreApartWhileTheyLive) {
  EXPECT_THAT(FoundAfter({{"0F1 frame 576", "0F1 frame 512"}}),
              HasSubstr("class 0, training: the frame of 0F1, [512, 640), overlaps the frame of "
                        "0F0, [448, 576) [memory_v2]"));
  // The third forward comes after the first backward, not before.
  EXPECT_THAT(FoundAfter({{"      0B0 frame 448 grad_input 896 wait 0RECV_B0\n", ""},
                          {"output 768 wait 0SEND_F0\n",
                           "output 768 wait 0SEND_F0\n"
                           "      0B0 frame 448 grad_input 896 wait 0RECV_B0\n"}}),
              HasSubstr("the frame of 0F2, [448, 576), overlaps the frame of 0F0, [448, 576) "
                        "[memory_v2]"));
  EXPECT_THAT(FoundAfter({{"forward @layer.forward layer 0 (transient=960",
                           "forward @layer.forward layer 0 (transient=448"}}),
              HasSubstr("scratch of 0F0, [448, 464), overlaps the frame of 0F0, [448, 576) "
                        "[memory_v2]"));
}

TEST(MemoryTest, ScratchIsApartFromWhatIsKept) {
  EXPECT_THAT(FoundAfter({{"forward @layer.forward layer 0 (transient=960",
                           "forward @layer.forward layer 0 (transient=256"}}),
              HasSubstr("scratch of F of chunk 0, [256, 272), overlaps params of layer, layer 0, "
                        "[256, 320) [memory_v2]"));
}

TEST(MemoryTest, ReadersFindWhatWasPut) {
  EXPECT_THAT(FoundAfter({{"slot %2 \"dw\": f32[batch=1,seq=4] @m[-,-]+dp in transient at 64",
                           "slot %2 \"dw\": f32[batch=1,seq=4] @m[-,-]+dp in transient at 56"},
                          {"  %4 = accumulate(%3, %2) backward",
                           "  %6 = gelu(%0) backward\n  %4 = accumulate(%3, %2) backward"},
                          {"  %2 = mul(%0, %1) backward",
                           "  slot %6 \"e\": f32[batch=1,seq=4] @m[-,-] in transient at 64 bytes "
                           "16\n  %2 = mul(%0, %1) backward"}}),
              HasSubstr("class 0, training, 0B2 layer.backward layer 0, instruction 2 accumulate: "
                        "reads `dw` at [1016, 1032), which `dw` at [1016, 1024) and others have "
                        "overwritten [memory_v3]"));
  EXPECT_THAT(FoundAfter({{"  %4 = mul(%3, %1) forward", "  %4 = mul(%4, %1) forward"}}),
              HasSubstr("instruction 3 mul: reads `z` at [768, 784), where nothing was put at 768 "
                        "[memory_v3]"));
  // Another value of the same size in its place.
  EXPECT_THAT(FoundAfter({{"slot %5 \"dx\": f32[batch=1,seq=4] @m[-,-] in grad_output at 0",
                           "slot %5 \"dx\": f32[batch=1,seq=4] @m[-,-] in transient at 64"},
                          {"  %4 = accumulate(%3, %2) backward\n  %5 = gelu(%0) backward",
                           "  %5 = gelu(%0) backward\n  %4 = accumulate(%3, %2) backward"}}),
              HasSubstr("reads `dw` at [1024, 1040), which `dx` at [1024, 1040) has overwritten "
                        "[memory_v3]"));
}

TEST(MemoryTest, ResultsTakeAnOperandsPlaceExactlyOrNone) {
  EXPECT_THAT(FoundAfter({{"slot %4 \"w/grad.next\": f32[batch=1,seq=4] @m[-,-]+dp in grads at 0",
                           "slot %4 \"w/grad.next\": f32[batch=1,seq=4] @m[-,-]+dp in grads at "
                           "8"}}),
              HasSubstr("writes `w/grad.next` at [136, 152) across `w/grad` at [128, 144) "
                        "[memory_v3]"));
  // An op that does not let its result take the operand's place.
  EXPECT_THAT(FoundAfter({{"%1 = gelu(%0) backward", "%1 = sqrt(%0) backward"},
                          {"slot %1 \"d\": f32[batch=1,seq=4] @m[-,-] in transient at 0",
                           "slot %1 \"d\": f32[batch=1,seq=4] @m[-,-] in grad_input at 0"}}),
              HasSubstr("instruction 0 sqrt: writes `d` at [704, 720) across `dx` at [704, 720) "
                        "[memory_v3]"));
}

TEST(MemoryTest, WhatStepsCarryOnIsTheUpdatesToWrite) {
  // Room of the block that no parameter takes.
  const std::string found =
      FoundAfter({{"slot %3 \"y\": f32[batch=1,seq=4] @m[-,-] in transient at 0",
                   "slot %3 \"y\": f32[batch=1,seq=4] @m[-,-] in params at 16"}});
  for (const std::string step : {"training", "evaluation"}) {
    EXPECT_THAT(found, HasSubstr("class 0, " + step +
                                 ", 0F2 layer.forward layer 0, instruction 1 all_reduce: writes "
                                 "`y` at [272, 288), where parameters, states or numbers lie that "
                                 "the update alone may write [memory_v6]"));
  }
}

TEST(MemoryTest, ReportsAreWritten) {
  EXPECT_EQ(FoundAfter({{"  report \"n\" 64", "  report \"n\" 72"}}),
            "class 0, training: reports `n` from 72, where no instruction puts 8 bytes "
            "[memory_v3]");
}

TEST(MemoryTest, NumbersAreTrue) {
  const auto memory = [](const std::string& from, const std::string& to) {
    return FoundAfter({{from, to}});
  };
  EXPECT_THAT(memory("peak 1088", "peak 1152"),
              HasSubstr("class 0: states 1152 bytes of peak; the highest end of what is used: 1088 "
                        "[memory_v4]"));
  EXPECT_THAT(memory("memory params 64", "memory params 128"),
              HasSubstr("class 0: states 128 bytes of params; of the blocks held: 64 [memory_v4]"));
  EXPECT_THAT(memory("frames 256 boundaries 256", "frames 192 boundaries 320"),
              HasSubstr("states 192 bytes of frames; frames of training: 256 [memory_v4]"));
  EXPECT_THAT(memory("boundaries 256 transient 256", "boundaries 320 transient 192"),
              HasSubstr("states 192 bytes of transient; transients and values of the step: 256"));
  EXPECT_THAT(
      memory("      workspace 0", "      workspace 1"),
      HasSubstr("states 1 bytes of workspace; the most of the segments it calls: 0 [memory_v4]"));
}

// A workspace too small is refused before the proof (plan_c15).
TEST(MemoryTest, WorkspacesHoldWhatOpsAllowTheirKernels) {
  // A maximum and a sum of one row, in the segment and in the class that calls it.
  const TextEdits stated = {
      {"  %1 = gelu(%0) forward", "  %1 = softmax(%0) forward"},
      {"@head.forward transient 64 workspace 0", "@head.forward transient 64 workspace 8"},
      {"peak 384 workspace 0", "peak 384 workspace 8"}};
  EXPECT_EQ(FoundAfter(stated), "");
}

}  // namespace
}  // namespace mgc
