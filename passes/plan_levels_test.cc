// The check of plans in the making: sound forms pass it, and a pass that breaks one is named with
// everything that it broke.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/pass.h"
#include "passes/plan/forms/check_forms.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] = R"(graph @g logical layers=2 (
  param %v: f32[embed=4,mlp=4],
  param %w: f32[mlp=4,embed=4],
  data %x: f32[batch=2,embed=4]
) {
  %h = matmul(%x, %v) {spec="b k, k n -> b n"} layer 0
  %y = matmul(%h, %w) {spec="b k, k n -> b n"} layer 0
  %z = matmul(%y, %y) {spec="b k, b k -> b"} layer 1
  %l: f64[] = total(%z) layer 1
  %n: f64[] = total(%x) layer 0
  loss "loss" = %l
  report "count" = %n
})";

// Two stages on two classes, two ranks each.
class PlanLevelsTest : public testing::Test {
 protected:
  void SetUp() override {
    ParallelConfig parallel;
    parallel.world_size = 4;
    parallel.tp = 2;
    parallel.pp = 2;
    parallel.global_batch_size = 3;
    absl::StatusOr<PassContext> context = ContextOf(parallel, model_);
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    PassForm form = StepGraphs{model_, absl::nullopt, {}};
    for (const PassEntry& pass : CompilePasses()) {
      absl::StatusOr<PassForm> next = RunPass(pass, std::move(form), context_, {});
      ASSERT_TRUE(next.ok()) << next.status();
      form = *std::move(next);
      if (const auto* staged = std::get_if<StagedPlan>(&form)) staged_ = *staged;
      if (const auto* scheduled = std::get_if<ScheduledPlan>(&form)) scheduled_ = *scheduled;
      if (const auto* ordered = std::get_if<OrderedPlan>(&form)) ordered_ = *ordered;
    }
  }

  // The labels of what `spoil` breaks, each once, in order.
  template <typename Form>
  std::vector<std::string> Broken(Form form, const std::function<void(Form*)>& spoil) const {
    EXPECT_EQ(FindViolations(form, model_).ToString(), "");
    spoil(&form);
    std::vector<std::string> labels;
    for (const Diagnostic& violation : FindViolations(form, model_)) {
      if (labels.empty() || labels.back() != violation.label) labels.push_back(violation.label);
    }
    return labels;
  }
  std::vector<std::string> BrokenStaged(const std::function<void(StagedPlan*)>& spoil) const {
    return Broken<StagedPlan>(staged_, spoil);
  }
  std::vector<std::string> BrokenScheduled(const std::function<void(ScheduledPlan*)>& spoil) const {
    return Broken<ScheduledPlan>(scheduled_, spoil);
  }
  std::vector<std::string> BrokenOrdered(const std::function<void(OrderedPlan*)>& spoil) const {
    return Broken<OrderedPlan>(ordered_, spoil);
  }

  // Number of the first segment with a slot behind a formal of the region.
  static size_t SegmentWith(const StagedPlan& staged, Region region) {
    for (size_t s = 0; s < staged.segments.size(); ++s) {
      for (const Slot& slot : staged.segments[s].slots) {
        const Formal& formal = staged.segments[s].formals[static_cast<size_t>(slot.formal)];
        if (formal.region == region) return s;
      }
    }
    ADD_FAILURE() << "no segment has a slot of the region";
    return 0;
  }

  const Graph model_ = ReadGraph(kModel);
  PassContext context_;
  StagedPlan staged_;
  ScheduledPlan scheduled_;
  OrderedPlan ordered_;
};

TEST_F(PlanLevelsTest, WhatAPlanKeepsAStagedPlanKeeps) {
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->classes.pop_back(); }),
              ElementsAre("plan_c1"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->segments[0].slots[0].formal = 99; }),
              ElementsAre("plan_c2"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->segments[0].instrs[0].outputs = {99}; }),
              ElementsAre("plan_c3"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->classes[0].blocks[0].block = 9; }),
              ElementsAre("plan_c4"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                plan->classes[0].train.chunks[0].forward[0].segment = -1;
              }),
              ElementsAre("plan_c5"));
  EXPECT_THAT(
      BrokenStaged([](StagedPlan* plan) { plan->classes[0].train.chunks[0].frame_bytes = 0; }),
      ElementsAre("plan_c10"));
  EXPECT_THAT(
      BrokenStaged([](StagedPlan* plan) { plan->classes[1].train.chunks[0].first_layer = 0; }),
      ElementsAre("plan_c13"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { std::swap(plan->stages[0], plan->stages[1]); }),
              ElementsAre("plan_c19"));
}

TEST_F(PlanLevelsTest, AllocationIsNotAnticipated) {
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->segments[0].transient_bytes = 64; }),
              ElementsAre("staged_c1"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                for (Slot& slot : plan->segments[SegmentWith(*plan, Region::kTransient)].slots) {
                  slot.offset += slot.formal == 0 ? 64 : 0;
                }
              }),
              ElementsAre("staged_c1"));
}

TEST_F(PlanLevelsTest, FormalsFindTheirMemory) {
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) { plan->classes[0].blocks.clear(); }),
              ElementsAre("staged_c2"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                StagedCall& call = plan->classes[0].train.chunks[0].forward[0];
                for (StagedBinding& binding : call.bindings) binding.base = StagedBase::kRegion;
              }),
              ElementsAre("staged_c2"));
}

TEST_F(PlanLevelsTest, SlotsLieInTheirRegions) {
  for (const Region region : {Region::kParams, Region::kGrads, Region::kStates, Region::kGlobals}) {
    SCOPED_TRACE(ToString(Formal{region, ""}));
    EXPECT_THAT(BrokenStaged([&](StagedPlan* plan) {
                  Segment& segment = plan->segments[SegmentWith(*plan, region)];
                  for (Slot& slot : segment.slots) {
                    const Formal& formal = segment.formals[static_cast<size_t>(slot.formal)];
                    if (formal.region == region) slot.offset += 4096;
                  }
                }),
                ElementsAre("staged_c3"));
  }
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                plan->classes[1].train.zeroed_global_bytes =
                    plan->classes[1].train.global_bytes + 8;
              }),
              ElementsAre("staged_c4"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                StagedStep& step = plan->classes[0].train;
                step.reports.front().offset = step.global_bytes;
              }),
              ElementsAre("staged_c4"));
  EXPECT_THAT(BrokenStaged([](StagedPlan* plan) {
                Segment& segment = plan->segments[SegmentWith(*plan, Region::kOutput)];
                for (Slot& slot : segment.slots) {
                  const Formal& formal = segment.formals[static_cast<size_t>(slot.formal)];
                  if (formal.region == Region::kOutput) slot.bytes += 64;
                }
              }),
              testing::Contains("staged_c5"));
}

TEST_F(PlanLevelsTest, SchedulesRunEveryActionOnce) {
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) { plan->schedule.lists.pop_back(); }),
              ElementsAre("scheduled_c1"));
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) { plan->schedule.lists[0][0].stage = 1; }),
              ElementsAre("scheduled_c1"));
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) {
                plan->schedule.lists[1][1].kind = ScheduleActionKind::kInputGradient;
              }),
              ElementsAre("scheduled_c1"));
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) { plan->schedule.lists[0].pop_back(); }),
              ElementsAre("plan_c11"));
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) {
                plan->schedule.lists[1].push_back(plan->schedule.lists[1].front());
              }),
              ElementsAre("plan_c11"));
  EXPECT_THAT(BrokenScheduled([](ScheduledPlan* plan) {
                std::swap(plan->schedule.lists[1][0], plan->schedule.lists[1][1]);
              }),
              ElementsAre("plan_c11"));
  EXPECT_THAT(
      BrokenScheduled([](ScheduledPlan* plan) { plan->schedule.lists[0][1].micro_batch = 7; }),
      ElementsAre("plan_c6"));
}

TEST_F(PlanLevelsTest, EveryBoundaryHasItsTransfer) {
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) { plan->classes[1].train.transfers.pop_back(); }),
              testing::Contains("plan_c12"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) { plan->classes[0].eval.transfers.pop_back(); }),
              testing::Contains("plan_c12"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                for (OrderedAction& action : plan->classes[1].train.compute) action.waits.clear();
              }),
              ElementsAre("plan_c12"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                plan->classes[0].train.transfers[0].anchor.micro_batch = 77;
              }),
              ElementsAre("plan_c6"));
  EXPECT_THAT(
      BrokenOrdered([](OrderedPlan* plan) { plan->classes[0].train.compute[0].output = -1; }),
      ElementsAre("plan_c10"));
}

TEST_F(PlanLevelsTest, TransfersAreAtTheirSlots) {
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) { plan->classes.pop_back(); }),
              ElementsAre("ordered_c1"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                plan->classes[0].train.transfers[0].slot = plan->classes[0].pool;
              }),
              ElementsAre("ordered_c1"));
  EXPECT_THAT(
      BrokenOrdered([](OrderedPlan* plan) { plan->classes[0].train.compute[0].input = -2; }),
      ElementsAre("ordered_c1"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                ++plan->classes[0].pool;
                plan->classes[0].train.transfers[0].slot = plan->classes[0].pool - 1;
              }),
              ElementsAre("ordered_c2"));
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                for (OrderedClass& c : plan->classes) {
                  for (OrderedTransfer& transfer : c.train.transfers) transfer.bytes /= 2;
                }
              }),
              ElementsAre("ordered_c2"));
  EXPECT_THAT(
      BrokenOrdered([](OrderedPlan* plan) { plan->classes[0].train.transfers[0].issued = 50; }),
      ElementsAre("ordered_c3"));
}

// The classes sum the gradient norm together; one that does so twice waits for the other forever.
TEST_F(PlanLevelsTest, ClassesAgreeOnTheirCollectives) {
  EXPECT_THAT(BrokenOrdered([](OrderedPlan* plan) {
                std::vector<StagedCall>& update = plan->staged.classes[1].train.update;
                const std::vector<StagedCall> once = update;
                update.insert(update.end(), once.begin(), once.end());
              }),
              ElementsAre("ordered_c4"));
}

absl::StatusOr<PassForm> Spoil(PassForm form, const PassContext& /*context*/) {
  ScheduledPlan plan = std::get<ScheduledPlan>(std::move(form));
  plan.schedule.lists[0].pop_back();
  plan.schedule.lists[1].pop_back();
  return plan;
}

TEST_F(PlanLevelsTest, ThePassIsNamedWithAllThatItBroke) {
  const PassEntry spoil = {"spoil", "", PassLevel::kScheduled, PassLevel::kScheduled, Spoil};
  const absl::Status status = RunPass(spoil, scheduled_, context_, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "after pass spoil: class 0: training runs stage 0 forward 3 and backward 2 times for 3 "
            "micro-batches [plan_c11]\n"
            "class 1: training runs stage 1 forward 3 and backward 2 times for 3 micro-batches "
            "[plan_c11]");
  RunOptions unchecked;
  unchecked.check = false;
  EXPECT_TRUE(RunPass(spoil, scheduled_, context_, unchecked).ok());
}

}  // namespace
}  // namespace mgc
