// No plan takes less time or memory than passes/search/plans/bound_plan.h says.

#include "passes/search/plans/bound_plan.h"

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/search_plans.h"
#include "passes/search/plans/search_space.h"
#include "tests/plan_search/requests.h"

namespace mgc {
namespace {

struct BoundCase {
  std::string model;
  std::string machine;
  int64_t world_size;
  int64_t global_batch_size;
  DType gradient_sums = DType::kF32;
};

class BoundPlanTest : public testing::TestWithParam<BoundCase> {};

void CheckBound(const SearchRequest& request, const ParallelConfig& config) {
  const absl::StatusOr<Plan> plan = CompileFound(request, config);
  if (!plan.ok() && IsRefusal(plan.status())) return;
  ASSERT_TRUE(plan.ok()) << plan.status();
  CompileOptions options = request.options;
  options.parallel = ProfiledConfig(config);
  ModelCompiler model(request.build(options.parallel).value(), request.dims);
  const absl::StatusOr<ModelProfile> profile = ProfileModel(model, options);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const CheckedConfig checked = CheckConfig(config, request.dims);
  const PlanBound bound = BoundPlan(PlanSpread(config, checked, *profile), request.options.machine);
  // A search's plans have no evaluation: their step is the same, and they need no more.
  const absl::StatusOr<FoundPlan> found = MeasureFound(request, config, nullptr, kSearchScope);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->step_ns, plan->predicted_step_ns);
  EXPECT_LE(found->peak_bytes, PeakBytes(*plan));
  EXPECT_LE(bound.step_ns, plan->predicted_step_ns);
  EXPECT_LE(bound.peak_bytes, PeakBytes(*plan));
  // Of neither is it a small part.
  EXPECT_GT(bound.step_ns, plan->predicted_step_ns / 8);
  EXPECT_GT(bound.peak_bytes, PeakBytes(*plan) / 4);
}

TEST_P(BoundPlanTest, IsNotAbovePlans) {
  constexpr int kPlans = 24;
  const BoundCase& c = GetParam();
  SearchRequest request = RequestFor(c.model, c.machine, c.world_size, c.global_batch_size);
  request.options.parallel.gradient_sums = c.gradient_sums;
  const SearchSpace space = ListCandidates(request.options.parallel, request.fixed, request.dims,
                                           request.options.machine);
  ASSERT_GT(space.candidates, kPlans);
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kPlans; ++i) {
    const size_t group = random() % space.groups.size();
    const ParallelConfig config =
        space.ConfigOf(group, random() % space.groups[group].candidates.size());
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", FlagsText(config)));
    CheckBound(request, config);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, BoundPlanTest,
                         testing::Values(BoundCase{"gpt2-tiny", "a100x8", 16, 32},
                                         BoundCase{"llama-tiny", "h100x8", 16, 32},
                                         BoundCase{"gpt2-tiny", "a100x8", 16, 32, DType::kBF16},
                                         // Groups that lie unevenly in machines of eight.
                                         BoundCase{"llama-tiny", "h100x8", 24, 48},
                                         BoundCase{"gpt2-tiny", "cpu-threads", 8, 16}));

}  // namespace
}  // namespace mgc
