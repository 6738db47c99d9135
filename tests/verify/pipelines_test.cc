// The lists that order makes of every schedule, at every cost, are proved: nothing waits for
// itself, no boundary slot is written while another use of it is not over.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/order/order.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/pipeline.h"

namespace mgc {
namespace {

// What the check of plans, or else the proof of their order, holds against a plan; a line each.
std::string Problems(const Plan& plan) {
  Diagnostics findings = FindPlanViolations(plan);
  if (findings.empty()) CheckOrder(plan, &findings);
  return findings.ToString();
}

bool Has(const std::string& problems, const char* label) {
  return problems.find(label) != std::string::npos;
}

TEST(PipelinesTest, WhatOrderMakesIsProved) {
  int cases = 0;
  for (const Costs& costs : {kFree, kFastNetwork, kEven, kSlowNetwork}) {
    for (const bool collectives : {false, true}) {
      for (const Pipeline& pipeline : Pipelines(costs, collectives)) {
        SCOPED_TRACE(NameOf(pipeline));
        EXPECT_EQ(Problems(MustOrder(pipeline).plan), "");
        if (HasFailure()) return;
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

TEST(PipelinesTest, ASlowLastStageIsProved) {
  for (const bool collectives : {false, true}) {
    Pipeline pipeline{ScheduleKind::kOneFOneB, 4, 1, 64, kEven, collectives};
    pipeline.slow_end = true;
    EXPECT_EQ(Problems(MustOrder(pipeline).plan), "");
  }
}

// Two neighbouring transfers of one rank change places, each anchored where it was.
TEST(PipelinesTest, TransfersInAnotherOrderAreCircles) {
  const Plan sound = MustOrder({ScheduleKind::kOneFOneB, 4, 1, 8, kEven, true}).plan;
  int circles = 0;
  for (size_t i = 0; i + 1 < sound.classes[1].train.transfers.size(); ++i) {
    Plan swapped = sound;
    std::vector<Transfer>& transfers = swapped.classes[1].train.transfers;
    std::swap(transfers[i], transfers[i + 1]);
    std::swap(transfers[i].anchor, transfers[i + 1].anchor);
    std::swap(transfers[i].issued, transfers[i + 1].issued);
    circles += Has(Problems(swapped), "[order_v4]") ? 1 : 0;
  }
  EXPECT_GT(circles, 0);
}

// A receive that no longer waits for the last reader of its slot.
TEST(PipelinesTest, ReceivesThatComeTooEarlyAreRaces) {
  const Plan sound = MustOrder({ScheduleKind::kInterleaved, 4, 2, 8, kSlowNetwork, false}).plan;
  int races = 0;
  for (size_t c = 0; c < sound.classes.size(); ++c) {
    for (size_t i = 0; i < sound.classes[c].train.transfers.size(); ++i) {
      Plan early = sound;
      std::vector<ActionRef>& after = early.classes[c].train.transfers[i].after;
      if (after.empty()) continue;
      after.clear();
      races += Has(Problems(early), "[order_v6]") ? 1 : 0;
    }
  }
  EXPECT_GT(races, 0);
}

TEST(PipelinesTest, ListsThatLackWhatTheyNeedAreRefused) {
  const Plan sound = MustOrder({ScheduleKind::kOneFOneB, 4, 1, 8, kEven, true}).plan;
  Plan blind = sound;  // actions do not wait for what they read
  for (Action& action : blind.classes[2].train.compute) action.waits.clear();
  EXPECT_TRUE(Has(Problems(blind), "[plan_c12]"));
  Plan lost = sound;
  lost.classes[3].train.transfers.pop_back();
  EXPECT_TRUE(Has(Problems(lost), "[plan_c12]"));
  Plan late = sound;
  std::swap(late.classes[0].train.compute[0], late.classes[0].train.compute[1]);
  EXPECT_TRUE(Has(Problems(late), "[plan_c11]"));
}

}  // namespace
}  // namespace mgc
