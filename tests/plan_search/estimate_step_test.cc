// How near estimates of steps (passes/search/plans/estimate_step.h) are to compiled plans.

#include "passes/search/plans/estimate_step.h"

#include <algorithm>
#include <cstdint>
#include <iostream>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/search_plans.h"
#include "tests/plan_search/requests.h"

namespace mgc {
namespace {

// What the plan takes, times its estimate.
double TimesEstimate(const SearchRequest& request, const ParallelConfig& config) {
  const CheckedConfig checked = CheckConfig(config, request.dims);
  EXPECT_TRUE(checked.violations.empty()) << checked.violations.ToString();
  CompileOptions options = request.options;
  options.parallel = ProfiledConfig(config);
  ModelCompiler model(request.build(options.parallel).value(), request.dims);
  const ModelProfile profile = ProfileModel(model, options).value();
  ScheduleCache schedules;
  const int64_t estimate =
      EstimateStepNs(PlanSpread(config, checked, profile), request.options.machine, &schedules);
  const int64_t step = CompileFound(request, config).value().predicted_step_ns;
  return static_cast<double>(step) / static_cast<double>(estimate);
}

// Llama 3 405B on 16,384 GPUs with sequence parallelism and ZeRO 1.
TEST(EstimateStep, IsNearPlansOfOneChunkAndBelowThoseOfSeveral) {
  SearchRequest request = RequestFor("llama3-405b", "h100x8", 16384, 2048);
  ParallelConfig config = request.options.parallel;
  config.compute_type = DType::kBF16;
  config.sequence_parallel = true;
  config.zero = 1;
  double least[] = {10, 10}, most[] = {0, 0};  // of one chunk a rank, of several
  for (const int64_t tp : {4, 8}) {
    for (const int64_t cp : {1, 8}) {
      for (const int64_t pp : {8, 16}) {
        for (const int64_t chunks : {1, 2, 3, 7}) {
          config.tp = tp;
          config.cp = cp;
          config.pp = pp;
          config.vp = chunks;
          config.schedule = chunks > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
          const double times = TimesEstimate(request, config);
          const size_t several = chunks > 1 ? 1 : 0;
          least[several] = std::min(least[several], times);
          most[several] = std::max(most[several], times);
        }
      }
    }
  }
  std::cout << absl::StrFormat(
      "plans take, times their estimates: one chunk %.2f to %.2f, several "
      "%.2f to %.2f\n",
      least[0], most[0], least[1], most[1]);
  EXPECT_GE(least[0], 1);
  EXPECT_LE(most[0], 1.10);
  EXPECT_GE(least[1], 1);
  EXPECT_LE(most[1], 1.5);
}

}  // namespace
}  // namespace mgc
