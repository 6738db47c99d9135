// Plans whose rounds repeat take as long, and need as many bytes, as a search says that counts most
// rounds (passes/plan/time/steady_rounds.h) in place of simulating them.

#include <cstdint>
#include <iostream>
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

struct Counts {
  int plans = 0;
  int steady = 0;  // of them, those without some rounds
};

void CheckSame(ModelCompilers& models, const SearchRequest& request, const ParallelConfig& config,
               Counts* counts) {
  OrderScope scope = kSearchScope;
  scope.all_rounds = true;
  const auto whole = MeasureFound(models, request, config, nullptr, scope);
  if (!whole.ok() && IsRefusal(whole.status())) return;
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto shorter = MeasureFound(models, request, config, nullptr, kSearchScope);
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_EQ(whole->step_ns, shorter->step_ns);
  EXPECT_EQ(whole->peak_bytes, shorter->peak_bytes);
  EXPECT_EQ(whole->parts.compute_ns, shorter->parts.compute_ns);
  EXPECT_EQ(whole->parts.update_ns, shorter->parts.update_ns);
  EXPECT_EQ(whole->parts.exposed_ns, shorter->parts.exposed_ns);
  EXPECT_EQ(whole->parts.bubble_ns, shorter->parts.bubble_ns);
  ++counts->plans;
  if (shorter->counted_rounds > 0) ++counts->steady;
}

// Random candidates with pipelines and many micro-batches.
void CheckAtRandom(const std::string& name, const std::string& machine, int64_t ranks,
                   int64_t batch, int plans) {
  SearchRequest request = RequestFor(name, machine, ranks, batch);
  request.options.parallel.compute_type = DType::kBF16;
  const SearchSpace space = ListCandidates(request.options.parallel, request.fixed, request.dims,
                                           request.options.machine);
  ModelCompilers models(request.build, request.dims);
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  std::mt19937_64 random(seed);
  Counts counts;
  while (counts.plans < plans) {
    const size_t group = random() % space.groups.size();
    const size_t index = random() % space.groups[group].candidates.size();
    const ParallelConfig config = space.ConfigOf(group, index);
    const int64_t samples = DataParallelSize(config) * config.micro_batch_size;
    if (config.pp == 1 || batch / samples < 6 * config.pp) continue;
    SCOPED_TRACE(absl::StrCat(name, ", seed ", seed, ", ", FlagsText(config)));
    CheckSame(models, request, config, &counts);
    if (testing::Test::HasFailure()) return;
  }
  std::cout << name << ", seed " << seed << ": " << counts.steady << " of " << counts.plans
            << " are steady" << std::endl;
  EXPECT_GT(counts.steady, counts.plans / 2);
}

TEST(SteadyRounds, TakeWhatAllRoundsTake) {
  CheckAtRandom("gpt2-tiny", "a100x8", 8, 256, 60);
  CheckAtRandom("gpt3-1.3b", "a100x8", 64, 1024, 20);
  CheckAtRandom("gpt3-175b", "h100x8", 256, 1024, 5);
}

TEST(SteadyRoundsCampaign, TakeWhatAllRoundsTake) {
  CheckAtRandom("llama-tiny", "h100x8", 16, 512, 1000);
  CheckAtRandom("gpt3-1.3b", "a100x8", 64, 1024, 1000);
  CheckAtRandom("gpt3-175b", "h100x8", 256, 1024, 200);
  CheckAtRandom("megatron-1t", "a100x8", 768, 1536, 100);
}

}  // namespace
}  // namespace mgc
