// How much of the collectives' time is hidden behind compute, by prediction on h100x8 in f32: plans
// as they are compiled, beside the same plans when every collective is waited for at once: copies
// before the first forward, sums where they start, reductions when the last backward is over.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_check.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tests/plan_forms/corpus.h"
#include "tests/plan_forms/rewritten_plans.h"

namespace mgc {
namespace {

// Of the class that waits longest.
CollectiveTime TimeOf(const Plan& plan) {
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return {};
  return *std::max_element(
      step->collectives.begin(), step->collectives.end(),
      [](const auto& a, const auto& b) { return a.ExposedNs() < b.ExposedNs(); });
}

struct ExposedCase {
  PlanCase plan;
  double most;  // of what could be hidden, the share that stays exposed
};

class ExposedTest : public testing::TestWithParam<ExposedCase> {};

TEST_P(ExposedTest, IsLittleOfWhatCouldBeHidden) {
  PlanCase plan_case = GetParam().plan;
  plan_case.machine = "h100x8";
  const CollectiveTime after = TimeOf(CompilePlanCase(plan_case));
  plan_case.split_products = 1;
  const Plan whole = CompilePlanCase(plan_case);
  const Plan plain = OneAfterAnother(whole);
  ASSERT_TRUE(CheckPlan(plain).ok()) << CheckPlan(plain);
  const CollectiveTime before = TimeOf(plain);
  const int64_t hideable = TimeOf(whole).hideable_ns;
  const int64_t won = before.ExposedNs() - after.ExposedNs();
  std::cout << absl::StrFormat(
      "%s: collectives %.3f ms, exposed before %.3f, after %.3f; %.3f could be hidden, %.1f %% of "
      "that stays\n",
      plan_case.name, after.all_ns * 1e-6, before.ExposedNs() * 1e-6, after.ExposedNs() * 1e-6,
      hideable * 1e-6, 100.0 * static_cast<double>(hideable - won) / static_cast<double>(hideable));
  EXPECT_GE(static_cast<double>(won), (1 - GetParam().most) * static_cast<double>(hideable));
}

PlanCase CaseOf(const char* name, const char* model, int64_t tp, int64_t dp, int64_t zero) {
  PlanCase c;
  c.name = name;
  c.model = model;
  c.tp = tp;
  c.dp = dp;
  c.zero = zero;
  c.micro_batches = 4;
  return c;
}

// A plan as it is, and with its products in pieces.
void AddBoth(PlanCase c, double most, double most_in_pieces, std::vector<ExposedCase>* cases) {
  cases->push_back({c, most});
  c.name += "_in_pieces";
  c.split_products = 4;
  cases->push_back({std::move(c), most_in_pieces});
}

// Sums of tensor parallelism can be hidden in backward alone, where products are whole: the next op
// of forward reads them. In pieces, what stays is mostly sums of gradients over dp: beside the
// collectives of the layers below there is no room for them.
std::vector<ExposedCase> Cases() {
  std::vector<ExposedCase> cases = {{CaseOf("dp8", "gpt2-124m", 1, 8, 0), 0.35},
                                    {CaseOf("zero1", "gpt2-124m", 1, 8, 1), 0.35}};
  AddBoth(CaseOf("tp8", "gpt3-175b", 8, 1, 0), 0.55, 0.20, &cases);
  AddBoth(CaseOf("tp8_dp8", "gpt3-175b", 8, 8, 0), 0.55, 0.46, &cases);
  for (const PlanCase& large : LargePlanCases()) {
    if (large.model == "gpt3-175b") AddBoth(large, 0.56, 0.35, &cases);
    if (large.model == "llama3-405b") AddBoth(large, 0.66, 0.46, &cases);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, ExposedTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.plan.name; });

}  // namespace
}  // namespace mgc
