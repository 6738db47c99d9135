// How near drafts (passes/search/plans/draft_estimate.h) are to compiled plans: of candidates drawn
// at random from what a search of published models looks at.

#include "passes/search/plans/draft_estimate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/choose_layers.h"
#include "passes/search/plans/draft_profile.h"
#include "passes/search/plans/search_plans.h"
#include "passes/search/plans/search_space.h"
#include "tests/plan_search/requests.h"

namespace mgc {
namespace {

// Plans with more forwards and backwards take too long to compile one by one.
constexpr int64_t kMostActions = 20000;

struct PublishedRun {
  std::string model;
  std::string machine;
  int64_t world_size;
  int64_t global_batch_size;
};

// Models with all their layers, on as many ranks as they were trained on, and fewer.
std::vector<PublishedRun> Runs() {
  return {{"gpt2-124m", "a100x8", 16, 64},        {"gpt3-1.3b", "a100x8", 64, 512},
          {"gpt3-175b", "a100x8", 1024, 1536},    {"gpt3-175b", "h100x8", 128, 256},
          {"llama3-405b", "h100x8", 16384, 2048}, {"llama3-405b", "h100x8", 1024, 256},
          {"megatron-1t", "a100x8", 3072, 3072}};
}

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double RelativeError(int64_t estimate, int64_t exact) {
  return static_cast<double>(estimate) / static_cast<double>(exact) - 1;
}

struct Drawn {
  ParallelConfig config;
  Plan plan;
  FoundPlan found;
  DraftEstimate estimate;
  double compile_seconds = 0;
  double draft_seconds = 0;

  double Exposed() const {
    return static_cast<double>(found.parts.ExposedNs()) / static_cast<double>(found.step_ns);
  }
  double TimeError() const { return RelativeError(estimate.step_ns, found.step_ns); }
  double MemoryError() const { return RelativeError(estimate.PeakBytes(), found.peak_bytes); }
};

// All but slots of boundaries is the plan's, and there are as many as the estimate allows.
void CheckMemory(const Drawn& drawn) {
  ASSERT_EQ(drawn.estimate.classes.size(), drawn.plan.classes.size());
  for (size_t c = 0; c < drawn.plan.classes.size(); ++c) {
    SCOPED_TRACE(absl::StrCat("pipeline rank ", c));
    const ClassEstimate& estimate = drawn.estimate.classes[c];
    const MemoryUse& memory = drawn.plan.classes[c].memory;
    EXPECT_EQ(estimate.memory.params, memory.params);
    EXPECT_EQ(estimate.memory.grads, memory.grads);
    EXPECT_EQ(estimate.memory.states, memory.states);
    EXPECT_EQ(estimate.memory.copies, memory.copies);
    EXPECT_EQ(estimate.memory.frames, memory.frames);
    EXPECT_EQ(estimate.memory.transient, memory.transient);
    EXPECT_EQ(estimate.memory.workspace, memory.workspace);
    const int64_t own = estimate.memory.boundaries - estimate.slots * drawn.estimate.slot_bytes;
    const int64_t slots = (memory.boundaries - own) / drawn.estimate.slot_bytes;
    EXPECT_EQ(own + slots * drawn.estimate.slot_bytes, memory.boundaries);
    EXPECT_GE(slots, estimate.slots_bound.least);
    EXPECT_LE(slots, estimate.slots_bound.most);
    EXPECT_EQ(estimate.PeakBytes() - estimate.slots * drawn.estimate.slot_bytes,
              memory.peak + memory.workspace - slots * drawn.estimate.slot_bytes);
  }
}

class Drawer {
 public:
  // `random` outlives it.
  Drawer(const PublishedRun& run, std::mt19937_64* random)
      : name_(absl::StrCat(run.model, " on ", run.world_size)),
        request_(RequestFor(run.model, run.machine, run.world_size, run.global_batch_size)),
        models_(std::make_unique<ModelCompilers>(request_.build, request_.dims)),
        random_(random) {
    request_.options.parallel.compute_type = DType::kBF16;
    request_.options.evaluation = false;
    space_ = ListCandidates(request_.options.parallel, request_.fixed, request_.dims,
                            request_.options.machine);
  }

  const std::string& name() const { return name_; }

  // The next that the compiler takes.
  Drawn Draw() {
    for (;;) {
      Drawn drawn;
      drawn.config = DrawConfig();
      const CheckedConfig checked = CheckConfig(drawn.config, request_.dims);
      const int64_t stages = drawn.config.pp * checked.vp;
      if (stages * checked.micro_batches * 2 > kMostActions) continue;
      OrderScope scope;
      scope.evaluation = false;
      scope.transfers = false;
      const Clock::time_point begin = Clock::now();
      absl::StatusOr<FoundPlan> found =
          MeasureFound(*models_, request_, drawn.config, &drawn.plan, scope);
      if (!found.ok() && IsRefusal(found.status())) continue;
      drawn.found = std::move(found).value();
      const Clock::time_point compiled = Clock::now();
      const DraftProfile& draft = ProfileOf(drawn.config);
      const Clock::time_point profiled = Clock::now();
      const PlanSpread spread(drawn.config, checked, draft.profile);
      drawn.estimate =
          EstimateByDraft(draft, spread, request_.options.machine, &schedules_).value();
      drawn.compile_seconds = Seconds(compiled - begin);
      drawn.draft_seconds = Seconds(Clock::now() - profiled);
      return drawn;
    }
  }

 private:
  ParallelConfig DrawConfig() {
    const size_t group = (*random_)() % space_.groups.size();
    ParallelConfig config =
        space_.ConfigOf(group, (*random_)() % space_.groups[group].candidates.size());
    config.recompute = static_cast<RecomputeKind>((*random_)() % kNumRecomputeKinds);
    return config;
  }

  const DraftProfile& ProfileOf(const ParallelConfig& config) {
    const auto [known, is_new] =
        profiles_.try_emplace(std::make_pair(KeyOf(config), config.recompute.Of(0)));
    if (is_new) {
      CompileOptions options = request_.options;
      options.parallel = ProfiledConfig(config);
      const std::shared_ptr<ModelCompiler> model = models_->For(options.parallel).value();
      known->second = ProfileForDrafts(*model, options).value();
    }
    return known->second;
  }

  const std::string name_;
  SearchRequest request_;
  std::unique_ptr<ModelCompilers> models_;
  std::mt19937_64* random_;
  SearchSpace space_;
  ScheduleCache schedules_;
  std::map<std::pair<ProfileKey, RecomputeKind>, DraftProfile> profiles_;
};

// Absolute errors of one kind of candidates.
class Errors {
 public:
  void Add(double error) { errors_.push_back(std::abs(error)); }

  // Prints them; the 95th percentile, 0 of none.
  double Summarize(const std::string& of) {
    if (errors_.empty()) return 0;
    std::sort(errors_.begin(), errors_.end());
    std::cout << absl::StrFormat(
        "%-32s %4d plans, 50th percentile %6.3f %%, 95th %6.3f %%, worst %6.3f %%\n", of,
        errors_.size(), 100 * At(0.5), 100 * At(0.95), 100 * errors_.back());
    return At(0.95);
  }

 private:
  double At(double quantile) const {
    return errors_[static_cast<size_t>(quantile * static_cast<double>(errors_.size() - 1))];
  }

  std::vector<double> errors_;
};

// Prints those that are far off.
void PrintFar(const std::string& name, const Drawn& drawn) {
  if (std::abs(drawn.TimeError()) < 0.02 && std::abs(drawn.MemoryError()) < 0.002) return;
  std::cout << absl::StrFormat("time %+.2f %%, memory %+.2f %%, exposed %.1f %%: %s %s\n",
                               100 * drawn.TimeError(), 100 * drawn.MemoryError(),
                               100 * drawn.Exposed(), name, FlagsText(drawn.config));
}

void CheckPlans(int plans) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  std::vector<Drawer> drawers;
  const std::vector<PublishedRun> runs = Runs();
  drawers.reserve(runs.size());
  for (const PublishedRun& run : runs) drawers.emplace_back(run, &random);
  Errors hidden;
  Errors exposed;
  Errors memory;
  double compile_seconds = 0;
  double draft_seconds = 0;
  for (int i = 0; i < plans; ++i) {
    Drawer& drawer = drawers[static_cast<size_t>(i) % drawers.size()];
    const Drawn drawn = drawer.Draw();
    PrintFar(drawer.name(), drawn);
    SCOPED_TRACE(absl::StrCat(drawer.name(), " ", FlagsText(drawn.config)));
    CheckMemory(drawn);
    (drawn.Exposed() < 0.1 ? hidden : exposed).Add(drawn.TimeError());
    memory.Add(drawn.MemoryError());
    compile_seconds += drawn.compile_seconds;
    draft_seconds += drawn.draft_seconds;
  }
  EXPECT_LE(hidden.Summarize("time, exposed less than 10 %"), 0.03);
  EXPECT_LE(exposed.Summarize("time, exposed at least 10 %"), 0.1);
  memory.Summarize("memory, slots of boundaries");
  std::cout << absl::StrFormat("compiled in %.2f s, drafts without their profiles in %.2f s\n",
                               compile_seconds, draft_seconds);
}

TEST(DraftEstimate, IsNearPlans) { CheckPlans(40); }

TEST(DraftEstimateCampaign, IsNearPlans) { CheckPlans(2000); }

}  // namespace
}  // namespace mgc
