#include "graph/verify/order/order.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/plan/testing/odd_plan.h"
#include "graph/verify/testing/sample_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string FoundAfter(const TextEdits& edits) {
  const Plan plan = EditedSample(edits);
  Diagnostics findings;
  CheckOrder(plan, &findings);
  return findings.ToString();
}

TEST(OrderTest, ASoundPlanIsProved) { EXPECT_EQ(FoundAfter({}), ""); }

TEST(OrderTest, StrangePlansAreRefusedWithoutHarm) {
  Diagnostics findings;
  CheckOrder(OddPlan(), &findings);
  EXPECT_TRUE(findings.Has("order_v1"));
  EXPECT_TRUE(findings.Has("order_v4"));
}

TEST(OrderTest, LayersAndBlocks) {
  EXPECT_THAT(
      FoundAfter({{"backward @first.backward layer embedding", "backward @first.backward"}}),
      HasSubstr("class 0, training: stage 0 backward: call 1 runs no layer; the embedding is due "
                "[order_v1]"));
  EXPECT_EQ(FoundAfter({{"update @layer.update layer 0 (transient=960, params=256",
                         "update @layer.update layer 0 (transient=960, params=320"}}),
            "class 0, training: the update: `params` of layer.update for layer 0 is bound to 320; "
            "its block is at 256 [order_v1]");
}

TEST(OrderTest, TransfersTakeWhatActionsUse) {
  EXPECT_THAT(FoundAfter({{"0F1 frame 576 output 832", "0F1 frame 576 output 896"}}),
              HasSubstr("0SEND_F1 is at 832, 0F1 writes at 896 [order_v2]"));
  EXPECT_THAT(FoundAfter({{"1RECV_F1 at 192 bytes 16", "1RECV_F1 at 192 bytes 8"},
                          {"0SEND_F1 at 832 bytes 16", "0SEND_F1 at 832 bytes 8"}}),
              AllOf(HasSubstr("0SEND_F1 moves 8 bytes, 0F1 writes 16 [order_v2]"),
                    HasSubstr("1RECV_F1 moves 8 bytes, 1F1 reads 16 [order_v2]")));
  EXPECT_THAT(FoundAfter({{"0B0 frame 448", "0B0 frame 576"}}),
              HasSubstr("0B0 reads its frame at 576, 0F0 has it at 448 [order_v2]"));
  EXPECT_THAT(FoundAfter({{"1B1 input 192", "1B1 input 128"}}),
              HasSubstr("1B1 reads its input at 128, 1F1 has it at 192 [order_v2]"));
  EXPECT_THAT(FoundAfter({{"(transient=960, output=frame)", "(transient=960, output=input)"},
                          {"0F0 frame 448", "0F0 frame 448 input 512"},
                          {"0F1 frame 576", "0F1 frame 576 input 640"},
                          {"0F2 frame 448", "0F2 frame 448 input 512"}}),
              HasSubstr("stage 0 reads an input that nobody sends [order_v2]"));
}

TEST(OrderTest, GroupsRunTheSameCollectives) {
  const std::string missing =
      FoundAfter({{"  update @update running 0 (transient=320, globals=0)\n", ""}});
  EXPECT_THAT(missing, HasSubstr("class 1, training: collective 0 over pp is missing; class 0 has "
                                 "all_reduce of f64[] in update of 0U0 [order_v3]"));
  EXPECT_THAT(missing, HasSubstr("[order_v4]"));
}

TEST(OrderTest, CirclesAreNamedAndDrawn) {
  const Plan plan = EditedSample({{"1RECV_F1 at 192 bytes 16 peer 0 behind 0 of 1F0",
                                   "1RECV_F1 at 192 bytes 16 peer 0 behind 1 of 1U0"},
                                  {"      1RECV_F1 at 192 bytes 16 peer 0 behind 1 of 1U0\n", ""},
                                  {"      1SEND_B1 at 256",
                                   "      1RECV_F1 at 192 bytes 16 peer 0 behind 0 of 1B1\n"
                                   "      1SEND_B1 at 256"}});
  Diagnostics findings;
  CheckOrder(plan, &findings);
  ASSERT_EQ(findings.size(), 1u) << findings.ToString();
  const Diagnostic& finding = findings[0];
  EXPECT_EQ(finding.label, "order_v4");
  EXPECT_EQ(finding.text,
            "the step never ends: a circle of 2 waits: class 0 0SEND_F1 -> class 1 1SEND_B0");
  EXPECT_EQ(finding.detail,
            "  class 0 communication at 0SEND_F1 waits until class 1 communication comes to "
            "1RECV_F1\n"
            "  class 1 communication at 1SEND_B0 waits until class 0 communication comes to "
            "0RECV_B0\n"
            "what has run, by time; * marks what never does:\n"
            "  class 0  | 0F0        0F1        *0SEND_F1* .\n"
            "  class 1  | .          1F0        1B0        *1SEND_B0*");
  EXPECT_THAT(finding.drawing, HasSubstr("q0 -> q2 [label=\"1RECV_F1\"];"));
}

TEST(OrderTest, BucketsAreReducedOnceBesideTheLastBackward) {
  const char kBackward[] =
      "    last_backward @first.backward layer embedding (transient=960, grad_input=704)\n";
  const char kReduce[] = "    last_backward @layer.reduce layer 0 (transient=960, grads=128)\n";
  const std::string twice = absl::StrCat(kReduce, kReduce);
  EXPECT_EQ(FoundAfter({{kBackward, ""}}),
            "class 0, training: stage 0 last backward: runs 1 of the 2 calls of its backward; the "
            "embedding is due [order_v5]");
  EXPECT_THAT(FoundAfter({{kReduce, twice.c_str()}}),
              HasSubstr("class 0, training: stage 0 reductions: runs layer 0, which the stage has "
                        "not or has run [order_v1]"));
  EXPECT_THAT(FoundAfter({{kReduce, ""},
                          {"    last_backward @layer.backward layer 0",
                           "    last_backward @layer.reduce layer 0 (transient=960, grads=128)\n"
                           "    last_backward @layer.backward layer 0"}}),
              HasSubstr("0B2 layer.backward layer 0: writes `w/grad.next` at [128, 144) while "
                        "collective 0 all_reduce of layer.reduce layer 0 in 0B2 still reads"));
}

TEST(OrderTest, SlotsAreReusedBehindExplicitWaitsOnly) {
  // The queue of communication would keep the order.
  EXPECT_EQ(FoundAfter({{"behind 0 of 0B1 after 0B0", "behind 0 of 0B1"}}),
            "class 0, training: 0RECV_B1 may write [896, 912) before 0B0 is over, which uses what "
            "0RECV_B0 put there; it must wait for that [order_v6]");
  EXPECT_EQ(FoundAfter(
                {{"1B2 input 128 grad_output 256 wait 1SEND_B1", "1B2 input 128 grad_output 256"}}),
            "class 1, training: 1B2 may write [256, 272) before 1SEND_B1 is over, which uses what "
            "1B1 put there; it must wait for that [order_v6]");
  // An outbox that is next an inbox.
  EXPECT_EQ(FoundAfter({{"grad_input 896 wait 0RECV_B0", "grad_input 832 wait 0RECV_B0"},
                        {"0RECV_B0 at 896", "0RECV_B0 at 832"}}),
            "class 0, training: 0RECV_B0 may write [832, 848) before 0SEND_F1 is over, which uses "
            "what 0F1 put there; it must wait for that [order_v6]");
  EXPECT_EQ(FoundAfter({{"grad_input 896 wait 0RECV_B0", "grad_input 832 wait 0RECV_B0"},
                        {"0RECV_B0 at 896 bytes 16 peer 1 behind 0 of 0B0",
                         "0RECV_B0 at 832 bytes 16 peer 1 behind 0 of 0B0 after_transfers "
                         "0SEND_F1"}}),
            "");
}

TEST(OrderTest, WaitsThatFollowFromOthersMayBeMissing) {
  // 0SEND_F2 comes after 0B0 and with it after 1SEND_B0 and 1B0.
  EXPECT_EQ(FoundAfter({{"1RECV_F2 at 128 bytes 16 peer 0 behind 0 of 1B0 after 1B0",
                         "1RECV_F2 at 128 bytes 16 peer 0 behind 0 of 1B0"}}),
            "");
}

TEST(OrderTest, TheNextStepWaitsForThisOne) {
  // Nothing but the collective over pp keeps class 0 from sending to a class that still computes.
  EXPECT_THAT(FoundAfter({{"  eval_update @update (transient=960, globals=0)\n", ""},
                          {"  eval_update @update (transient=320, globals=0)\n", ""}}),
              HasSubstr("class 1, evaluation: 1RECV_F0 of the next step may write [128, 144) "
                        "before 1F2 is over, which uses what 1RECV_F2 put there; it must wait for "
                        "that [order_v6]"));
}

TEST(OrderTest, PartlyOverlappingSlotsCount) {
  EXPECT_THAT(FoundAfter({{"0F1 frame 576", "0F1 frame 512"}, {"0B1 frame 576", "0B1 frame 512"}}),
              HasSubstr("0F1 may write [512, 640) before 0B0 is over, which uses what 0F0 put "
                        "there"));
  EXPECT_THAT(FoundAfter({{"forward @head.forward layer 1 (transient=320",
                           "forward @head.forward layer 1 (transient=256"}}),
              HasSubstr("1F1 may write [256, 272) before 1SEND_B0 is over"));
}

TEST(OrderTest, SlotsOfRunningCollectivesAreLeftAlone) {
  EXPECT_THAT(FoundAfter({{"  wait 0 forward\n  %4 = mul(%3, %1) forward\n",
                           "  %4 = mul(%3, %1) forward\n  wait 0 forward\n"}}),
              HasSubstr("class 0, training, 0F0 layer.forward layer 0: reads `y` at [960, 976) "
                        "while collective 0 all_reduce of layer.forward layer 0 in 0F0 still "
                        "writes [960, 976); the wait must come before [order_v7]"));
  EXPECT_THAT(FoundAfter({{"  wait 0 forward\n", "  %2 = gelu(%0) forward\n  wait 0 forward\n"}}),
              HasSubstr("writes `y.part` at [512, 528)"));
  // Gradients that are being reduced.
  EXPECT_THAT(FoundAfter({{"  update @update running 0 (transient=960",
                           "  update @update (transient=960"}}),
              HasSubstr("nothing waits for collective 0 all_reduce of layer.reduce layer 0 in 0B2 "
                        "[order_v8]"));
}

// The last backward waits for a copy that backward alone reads, the others do not.
TEST(OrderTest, EveryBackwardWaitsForItsCopies) {
  const auto edits = [&](const char* usual, const char* last) {
    return TextEdits{
        {"segment @layer.reduce",
         "segment @copy transient 0 workspace 0 collectives 1 (transient, states) {\n"
         "  slot %0 \"w.piece\": f32[batch=1,seq=4] @m[-,-]+dp in states at 0 bytes 16\n"
         "  slot %1 \"w.copy\": f32[batch=1,seq=4] @m[-,-] in states at 64 bytes 16\n"
         "  start 0 %1 = all_reduce(%0) prepare\n}\nsegment @layer.reduce"},
        {"(transient, grad_input, frame, grads, grad_output)",
         "(transient, grad_input, frame, grads, grad_output, states)"},
        {"  %2 = mul(%0, %1) backward",
         "  slot %6 \"w.copy\": f32[batch=1,seq=4] @m[-,-] in states at 64 bytes 16\n"
         "  %2 = mul(%0, %6) backward"},
        {"grad_output=704)\n    backward @first",
         "grad_output=704, states=320)\n    backward @first"},
        {"grad_output=704)\n    last_backward @first",
         "grad_output=704, states=320)\n    last_backward @first"},
        {"    forward @first.forward layer embedding (transient=960, output=frame)\n"
         "    forward @layer.forward layer 0 (transient=960, input=frame, params=256, "
         "frame=frame+64,\n"
         "      output=output)\n    backward",
         "    prepare @copy layer 0 (transient=960, states=320)\n"
         "    forward @first.forward layer embedding (transient=960, output=frame)\n"
         "    forward @layer.forward layer 0 (transient=960, input=frame, params=256, "
         "frame=frame+64,\n"
         "      output=output)\n    backward"},
        {"      0F0 frame 448 output 768\n      0F1 frame 576",
         "      0P0\n      0F0 frame 448 output 768\n      0F1 frame 576"},
        {"    backward @layer.backward layer 0 (", usual},
        {"    last_backward @layer.backward layer 0 (", last}};
  };
  EXPECT_EQ(FoundAfter(edits("    backward @layer.backward layer 0 running 0 (",
                             "    last_backward @layer.backward layer 0 running 0 (")),
            "");
  EXPECT_THAT(FoundAfter(edits("    backward @layer.backward layer 0 (",
                               "    last_backward @layer.backward layer 0 running 0 (")),
              HasSubstr("0B0 layer.backward layer 0: reads `w.copy`"));
}

TEST(OrderTest, EveryCollectiveIsWaitedFor) {
  EXPECT_THAT(FoundAfter({{"  wait 0 update\n", ""}}),
              HasSubstr("class 1, training, 1U0 update: nothing waits for collective 0 all_reduce "
                        "of update in 1U0 [order_v8]"));
}

}  // namespace
}  // namespace mgc
