// What proofs did not see before the third version of the verifier: each damage is refused in the
// right words.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/edit_plan.h"

namespace mgc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string FindingsOf(const Plan& plan) { return VerifyPlan(plan).findings.ToString(); }

// One rank of a llama whose heads have two elements: one frequency, which is 1 whatever its base.
Plan SmallHeads(bool stretched) {
  TrainCase c;
  c.preset = "llama-tiny";
  c.heads = c.kv_heads = 8;
  c.head_dim = 2;
  c.stretched = stretched;
  c.parallel.micro_batch_size = 1;
  c.parallel.global_batch_size = 2;
  return *CompileCase(c);
}

// Sets an attribute in every instruction that has it, of segments whose name ends in `where`.
int SetAll(Plan* plan, absl::string_view where, absl::string_view op, const std::string& attr,
           double value) {
  int count = 0;
  for (Segment& segment : plan->segments) {
    if (!absl::EndsWith(segment.name, where)) continue;
    for (Instr& instr : segment.instrs) {
      if (instr.op == nullptr || instr.op->name != op) continue;
      instr.attrs.Set(attr, value);
      ++count;
    }
  }
  return count;
}

// --- Attributes that act through a size

TEST(RotationTest, TheBaseOfSmallHeadsIsSeen) {
  Plan plan = SmallHeads(false);
  ASSERT_EQ(FindingsOf(plan), "");
  ASSERT_GT(SetAll(&plan, "", "rope", "theta", 500), 2);
  EXPECT_THAT(FindingsOf(plan), AllOf(HasSubstr(" rope"), HasSubstr("[meaning_v6]")));
  plan = SmallHeads(false);
  ASSERT_GT(SetAll(&plan, ".backward", "rope", "theta", 500), 0);
  EXPECT_THAT(FindingsOf(plan), HasSubstr("its gradient"));
}

TEST(RotationTest, EveryNumberOfTheStretchingIsSeen) {
  const Plan plan = SmallHeads(true);
  ASSERT_EQ(FindingsOf(plan), "");
  for (const char* attr : {"factor", "low", "high", "original"}) {
    Plan damaged = plan;
    ASSERT_GT(SetAll(&damaged, "", "rope", attr, 2.5), 2);
    EXPECT_THAT(FindingsOf(damaged), HasSubstr("[meaning_v6]")) << attr;
  }
}

// --- Constants

TEST(ConstantTest, ATurnOfOneFieldIsSeen) {
  const Plan plan = CompileTiny("tp2");
  for (const double by : {0x1p61, 0x1p-61, 0x1p122}) {
    Plan damaged = plan;
    Segment& head = SegmentOf(&damaged, "head.backward");
    Attrs& seed = head.instrs[InstrOf(head, "constant")].attrs;
    seed.Set("value", seed.Real("value") * by);
    EXPECT_THAT(FindingsOf(damaged), HasSubstr("its gradient")) << by;
    damaged = plan;
    ASSERT_GT(SetAll(&damaged, "", "layer_norm", "eps", 1e-5 * by), 2);
    EXPECT_THAT(FindingsOf(damaged), HasSubstr("[meaning_v6]")) << by;
  }
}

TEST(ConstantTest, AttributesAreFinite) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const double value : {kInf, -kInf, std::numeric_limits<double>::quiet_NaN()}) {
    Plan plan = CompileTiny("tp2");
    ASSERT_GT(SetAll(&plan, "", "layer_norm", "eps", value), 2);
    EXPECT_THAT(FindingsOf(plan), AllOf(HasSubstr("attribute `eps` is "),
                                        HasSubstr("no finite number [layer_norm_a4]")));
  }
}

// --- Collectives in place

std::string MemoryOf(const Plan& plan) {
  Diagnostics findings;
  CheckMemory(plan, &findings);
  return findings.ToString();
}

// Lays the result of a segment's first instruction of an op exactly over its operand.
void PutInPlace(Segment* segment, absl::string_view op) {
  const Instr& instr = segment->instrs[InstrOf(*segment, op)];
  Slot& in = segment->slots[static_cast<size_t>(instr.inputs[0])];
  Slot& out = segment->slots[static_cast<size_t>(instr.outputs[0])];
  out.formal = in.formal;
  out.offset = in.offset;
  in.bytes = out.bytes = std::max(in.bytes, out.bytes);
}

TEST(InPlaceTest, OnlyAnAllReduceTakesItsOperandsPlace) {
  Plan reduced = CompileTiny("tp2");
  ASSERT_EQ(MemoryOf(reduced), "");
  PutInPlace(&SegmentOf(&reduced, "layer.forward"), "all_reduce");
  EXPECT_EQ(MemoryOf(reduced), "");
  const Plan plan = CompileTiny("tp4_sp");
  ASSERT_EQ(MemoryOf(plan), "");
  for (const char* op : {"all_gather", "reduce_scatter"}) {
    Plan damaged = plan;
    PutInPlace(&SegmentOf(&damaged, "layer.forward"), op);
    EXPECT_THAT(MemoryOf(damaged),
                AllOf(HasSubstr("over its operand"),
                      HasSubstr(absl::StrCat(op, " may not work in place [memory_v3]"))));
  }
}

TEST(InPlaceTest, IsRefusedWhenAPlanIsRead) {
  const Plan plan = CompileTiny("tp4_sp");
  for (const char* op : {"all_gather", "reduce_scatter"}) {
    Plan damaged = plan;
    PutInPlace(&SegmentOf(&damaged, "layer.forward"), op);
    EXPECT_THAT(FindingsOf(damaged),
                HasSubstr(absl::StrCat(op, " may not work in place [plan_c18]")));
  }
}

// --- Owners

TEST(OwnerTest, KeepsTheMeanGradient) {
  Plan plan = CompileTiny("pp2");
  int moved = 0;
  for (PlanClass& c : plan.classes) {
    for (HeldBlock& held : c.blocks) {
      for (const PlanClass& other : plan.classes) {
        for (const HeldBlock& copy : other.blocks) {
          if (&other == &c || copy.block != held.block || copy.layer != held.layer) continue;
          held.owner = !held.owner;
          ++moved;
        }
      }
    }
  }
  ASSERT_EQ(moved, 2);
  EXPECT_THAT(FindingsOf(plan), AllOf(HasSubstr("is owned here, where its gradient is not "
                                                "kept"),
                                      HasSubstr("[placement_v10]")));
}

// --- Stated numbers

TEST(StatedNumbersTest, WorkspaceIsWhatIsUsed) {
  constexpr int64_t kHuge = int64_t{1} << 39;
  Plan plan = CompileTiny("tp2");
  plan.classes[0].memory.workspace = kHuge;
  EXPECT_THAT(FindingsOf(plan),
              AllOf(HasSubstr("states 549755813888 bytes of workspace"), HasSubstr("[memory_v4]")));
  plan.segments[0].workspace_bytes = kHuge;
  EXPECT_THAT(FindingsOf(plan), HasSubstr("its ops allow their kernels: "));
}

TEST(StatedNumbersTest, OptionsAreThoseOfThePlan) {
  Plan plan = CompileTiny("tp2_pp2_vp2_dp2");
  plan.options = {{"--tp", "2"}, {"--pp", "2"}, {"--vp", "2"}, {"--world-size", "8"}};
  EXPECT_EQ(FindingsOf(plan), "");
  plan.options = {{"--tp", "4"}, {"--vp", "3"}};
  EXPECT_THAT(FindingsOf(plan),
              AllOf(HasSubstr("plan: states option --tp 4; it has 2 [meaning_v9]"),
                    HasSubstr("plan: states option --vp 3; it has 2 [meaning_v9]")));
}

TEST(StatedNumbersTest, TheVocabularyIsWhatDataIsLookedUpIn) {
  Plan plan = CompileTiny("one_rank");
  const int64_t vocabulary = plan.vocab;
  plan.vocab = 100000;
  EXPECT_THAT(FindingsOf(plan),
              HasSubstr(absl::StrCat("states a vocabulary of 100000; the model looks its data up "
                                     "in ",
                                     vocabulary, " entries [meaning_v9]")));
}

TEST(StatedNumbersTest, AStartNamesTheAttributeAndBothValues) {
  Plan plan = CompileTiny("one_rank");
  for (ParamBlock& block : plan.blocks) {
    for (ParamEntry& entry : block.entries) {
      if (entry.init.Find("std") != nullptr) entry.init.Set("std", 0.5);
    }
  }
  EXPECT_THAT(FindingsOf(plan), HasSubstr("its `std` is 0.5; the model has 0.02 [meaning_v9]"));
}

}  // namespace
}  // namespace mgc
