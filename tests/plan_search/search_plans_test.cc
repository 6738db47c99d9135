// A search's answer is the best of all candidates, each of which is compiled.

#include "passes/search/plans/search_plans.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/choose_layers.h"
#include "passes/search/plans/layer_variants.h"
#include "tests/plan_search/requests.h"

namespace mgc {
namespace {

struct Compiled {
  std::string flags;
  int64_t step_ns;
  int64_t peak_bytes;
};

// Every candidate as flags can ask for it, and of many one more at random: with its stages cut and
// its layers computed again in some way.
std::vector<ParallelConfig> ConfigsOf(const SearchRequest& request, std::mt19937_64* random) {
  std::vector<ParallelConfig> configs;
  const SearchSpace space = ListCandidates(request.options.parallel, request.fixed, request.dims,
                                           request.options.machine);
  for (size_t g = 0; g < space.groups.size(); ++g) {
    for (size_t i = 0; i < space.groups[g].candidates.size(); ++i) {
      const ParallelConfig config = space.ConfigOf(g, i);
      const std::vector<ParallelConfig> cuts = CutsOf(config, request.dims, config.pp > 1);
      ParallelConfig other = cuts[(*random)() % cuts.size()];
      std::vector<RecomputeKind> kinds;
      for (int64_t l = 0; l < request.dims.layers; ++l) {
        kinds.push_back(static_cast<RecomputeKind>((*random)() % kNumRecomputeKinds));
      }
      other.recompute = SimplestOf(kinds);
      configs.push_back(other);
      for (const RecomputeKind kind :
           {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull}) {
        configs.push_back(config);
        configs.back().recompute = kind;
      }
    }
  }
  return configs;
}

// Those that the compiler takes.
std::vector<Compiled> CompileAll(const SearchRequest& request,
                                 const std::vector<ParallelConfig>& configs) {
  std::vector<Compiled> all;
  for (const ParallelConfig& config : configs) {
    const absl::StatusOr<Plan> plan = CompileFound(request, config);
    if (!plan.ok()) {
      EXPECT_TRUE(IsRefusal(plan.status())) << plan.status();
      continue;
    }
    all.push_back({FlagsText(config), plan->predicted_step_ns, PeakBytes(*plan)});
  }
  return all;
}

int64_t BestWithin(const std::vector<Compiled>& all, int64_t memory) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (const Compiled& plan : all) {
    if (plan.peak_bytes <= memory) best = std::min(best, plan.step_ns);
  }
  return best;
}

// With all memory, and with as much as a tenth, a half, and only the smallest of plans get by with.
void CheckRegret(SearchRequest request) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  const std::vector<Compiled> all = CompileAll(request, ConfigsOf(request, &random));
  ASSERT_GT(all.size(), 50u);
  std::vector<int64_t> peaks;
  peaks.reserve(all.size());
  for (const Compiled& plan : all) peaks.push_back(plan.peak_bytes);
  std::sort(peaks.begin(), peaks.end());
  request.budget = static_cast<int64_t>(all.size()) * 16;
  for (const int64_t memory : {peaks.back(), peaks[peaks.size() / 4], peaks.front()}) {
    request.options.machine.memory = memory;
    const absl::StatusOr<FoundPlans> found = SearchPlans(request);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_LE(found->ranked.front().step_ns, BestWithin(all, memory));
    EXPECT_EQ(found->least_bound_ns, found->ranked.front().step_ns);
    EXPECT_LE(found->ranked.front().peak_bytes, memory);
    // What a search says that ends early holds too.
    SearchRequest early = request;
    early.budget = 1;
    const absl::StatusOr<FoundPlans> cut = SearchPlans(early);
    if (cut.ok()) {
      EXPECT_LE(cut->least_bound_ns, found->ranked.front().step_ns);
      EXPECT_GE(cut->ranked.front().step_ns, found->ranked.front().step_ns);
    }
    std::cout << "of " << all.size() << " plans, " << found->compiled << " compiled, "
              << found->profiled << " profiles: " << FlagsText(found->ranked.front().config)
              << std::endl;
  }
  request.options.machine.memory = peaks.front() / 2;
  const absl::Status none = SearchPlans(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(none)) << none;
  EXPECT_TRUE(absl::StrContains(none.message(), "[A2]")) << none;
}

TEST(SearchPlans, FindsTheBestOnFourRanks) {
  SearchRequest request = RequestFor("gpt2-tiny", "a100x8", 4, 4);
  request.options.parallel.micro_batch_size = 1;
  request.fixed.micro_batch_size = true;
  CheckRegret(request);
}

// Of many candidates with random cuts and recomputation none is faster than what is found, with all
// memory and with half of what that has beyond the smallest of them.
void CheckAtRandom(const std::string& model, int64_t ranks, int configs) {
  SearchRequest request = RequestFor(model, "a100x8", ranks, ranks);
  request.budget = 1 << 20;
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  std::mt19937_64 random(seed);
  std::vector<ParallelConfig> configurations = ConfigsOf(request, &random);
  std::shuffle(configurations.begin(), configurations.end(), random);
  configurations.resize(std::min(configurations.size(), static_cast<size_t>(configs)));
  const std::vector<Compiled> all = CompileAll(request, configurations);
  int64_t least = request.options.machine.memory;
  for (const Compiled& plan : all) least = std::min(least, plan.peak_bytes);
  for (const bool whole : {true, false}) {
    const int64_t memory = request.options.machine.memory;
    const absl::StatusOr<FoundPlans> found = SearchPlans(request);
    ASSERT_TRUE(found.ok()) << found.status();
    const FoundPlan& best = found->ranked.front();
    std::cout << model << " on " << ranks << ", seed " << seed << ", " << found->compiled
              << " compiled: " << FlagsText(best.config) << std::endl;
    EXPECT_EQ(found->least_bound_ns, best.step_ns);
    EXPECT_LE(best.peak_bytes, memory);
    EXPECT_LE(best.step_ns, BestWithin(all, memory)) << (whole ? "all memory" : "less");
    request.options.machine.memory = least + std::max<int64_t>(best.peak_bytes - least, 0) / 2;
  }
}

class SearchPlansCampaign
    : public testing::TestWithParam<std::tuple<const char*, int64_t /* ranks */>> {};

TEST_P(SearchPlansCampaign, FindsTheBestOfFourLayers) {
  const auto& [model, ranks] = GetParam();
  CheckAtRandom(model, ranks, 8000);
}

INSTANTIATE_TEST_SUITE_P(Models, SearchPlansCampaign,
                         testing::Combine(testing::Values("gpt2-tiny", "llama-tiny", "qwen3-tiny"),
                                          testing::Values(2, 4, 8, 16)));

TEST(SearchPlans, FindsTheBestOfWhatFlagsLeaveOpen) {
  SearchRequest request = RequestFor("llama-tiny", "h100x8", 16, 16);
  request.options.parallel.tp = 2;
  request.options.parallel.micro_batch_size = 1;
  request.options.parallel.order = kDefaultAxisOrder;
  request.options.parallel.sequence_parallel = true;
  request.fixed.tp = request.fixed.micro_batch_size = request.fixed.order = true;
  request.fixed.sequence_parallel = true;
  CheckRegret(request);
}

// Of equal meshes the precision is chosen that is faster, and the other is said not to be.
TEST(SearchPlans, ChoosesThePrecisionWhereThatIsOpen) {
  SearchRequest request = RequestFor("gpt2-124m", "h100x8", 4, 4);
  request.fixed.cp = request.fixed.micro_batch_size = request.fixed.zero = true;
  request.fixed.chunks = request.fixed.cuts = true;
  request.options.parallel.cp = request.options.parallel.micro_batch_size = 1;
  const absl::StatusOr<FoundPlans> alone = SearchPlans(request);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->ranked.front().config.compute_type, DType::kF32);
  request.fixed.precision = false;
  request.budget = 1 << 20;
  const absl::StatusOr<FoundPlans> found = SearchPlans(request);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->candidates, 2 * alone->candidates);
  const FoundPlan& best = found->ranked.front();
  EXPECT_EQ(best.config.compute_type, DType::kBF16);
  EXPECT_LT(best.step_ns, alone->ranked.front().step_ns);
  EXPECT_EQ(found->least_bound_ns, best.step_ns);
  EXPECT_TRUE(absl::StrContains(FlagsText(best.config), "--bf16"));
}

// Where more micro-batches in a row save time and fit, the best plan has them.
TEST(SearchPlans, TriesLargerGroupsOfMicroBatches) {
  SearchRequest request = RequestFor("llama3-405b", "a100x8", 1024, 256);
  ParallelConfig& parallel = request.options.parallel;
  parallel.tp = 4;
  parallel.cp = 8;
  parallel.pp = 32;
  parallel.micro_batch_size = parallel.zero = 1;
  parallel.sequence_parallel = true;
  parallel.compute_type = DType::kBF16;
  FixedChoices& fixed = request.fixed;
  fixed.tp = fixed.cp = fixed.pp = fixed.micro_batch_size = fixed.zero = true;
  fixed.sequence_parallel = fixed.zero_group = fixed.order = true;
  request.budget = 2;
  const absl::StatusOr<FoundPlans> found = SearchPlans(request);
  ASSERT_TRUE(found.ok()) << found.status();
  const FoundPlan& best = found->ranked.front();
  EXPECT_GT(best.config.group_size, 0) << FlagsText(best.config);
  ParallelConfig usual = best.config;
  usual.group_size = 0;
  EXPECT_LT(best.step_ns, MeasureFound(request, usual, nullptr, kSearchScope)->step_ns);
  // By hand there is no other.
  parallel.schedule = ScheduleKind::kInterleaved;
  parallel.vp = best.config.vp;
  fixed.chunks = true;
  const absl::StatusOr<FoundPlans> by_hand = SearchPlans(request);
  ASSERT_TRUE(by_hand.ok()) << by_hand.status();
  EXPECT_EQ(by_hand->ranked.front().config.group_size, 0);
}

TEST(SearchPlans, SaysWhatRefusesAll) {
  SearchRequest request = RequestFor("gpt2-tiny", "a100x8", 8, 8);
  request.options.parallel.tp = 8;
  request.fixed.tp = true;
  const absl::Status refused = SearchPlans(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "[A1]")) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "[M1]")) << refused;
}

TEST(SearchPlans, SaysThatItsBudgetHasEnded) {
  SearchRequest request = RequestFor("gpt2-tiny", "a100x8", 4, 8);
  request.budget = 0;
  const absl::Status ended = SearchPlans(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(ended)) << ended;
  EXPECT_TRUE(absl::StrContains(ended.message(), "[A3]")) << ended;
}

TEST(SearchPlans, IsTheSameEveryTime) {
  SearchRequest request = RequestFor("gpt2-tiny", "a100x8", 16, 64);
  request.budget = 12;
  const absl::StatusOr<FoundPlans> first = SearchPlans(request);
  const absl::StatusOr<FoundPlans> second = SearchPlans(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(first->ranked.size(), second->ranked.size());
  EXPECT_LE(first->compiled, request.budget * 4);
  for (size_t i = 0; i < first->ranked.size(); ++i) {
    EXPECT_EQ(FlagsText(first->ranked[i].config), FlagsText(second->ranked[i].config));
    EXPECT_EQ(first->ranked[i].step_ns, second->ranked[i].step_ns);
  }
}

}  // namespace
}  // namespace mgc
