#include "passes/search/plans/choose_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/search/plans/layer_variants.h"

namespace mgc {
namespace {

constexpr int64_t kLayers = 8;

// A layer takes 300 ns and keeps 100 bytes; without them 330 ns and 60 bytes, or 400 and 10. The
// head takes as long as two layers.
ModelProfile Profile(int64_t ns, int64_t frame_bytes) {
  LayerProfile layer;
  layer.forward_ns = ns / 3;
  layer.backward_ns = ns - ns / 3;
  layer.compute_ns = ns;
  layer.frame_bytes = frame_bytes;
  layer.param_bytes = 1000;
  layer.grad_bytes = 1000;
  layer.state_bytes = 2000;
  ModelProfile profile;
  profile.has_embedding = profile.has_head = true;
  profile.layers.assign(kLayers + 2, layer);
  profile.layers.front() = LayerProfile();
  profile.layers.back() = LayerProfile();
  profile.layers.back().forward_ns = 200;
  profile.layers.back().backward_ns = 400;
  return profile;
}

// Whose network takes no time.
Machine FastNetwork() {
  Machine machine;
  machine.tiers = {NetworkTier()};
  machine.tiers.front().bandwidth = 1e18;
  return machine;
}

class ChooseLayersTest : public testing::Test {
 protected:
  ChooseLayersTest() {
    config_.pp = config_.world_size = 2;
    config_.global_batch_size = 64;
    dims_.layers = kLayers;
  }

  // What is chosen, as flags say it.
  std::string Chosen(int64_t memory, bool free_cuts = true) {
    const LayerChoices choices(config_, dims_, machine_, none_);
    const auto choice =
        choices.Choose({&none_, &selective_, &full_}, memory, free_cuts, &schedules_);
    if (!choice.has_value()) return "nothing";
    EXPECT_LE(choice->bound.peak_bytes, memory);
    EXPECT_TRUE(CheckConfig(choice->config, dims_).violations.empty());
    return absl::StrCat(choice->config.layout.layout.value_or("even"), " ",
                        ToString(choice->config.recompute));
  }

  const ModelProfile none_ = Profile(300, 100);
  const ModelProfile selective_ = Profile(330, 60);
  const ModelProfile full_ = Profile(400, 10);
  ParallelConfig config_;
  ModelDims dims_;
  const Machine machine_ = FastNetwork();
  ScheduleCache schedules_;
};

// Ten layers' worth of time: five each.
TEST_F(ChooseLayersTest, TheHeadCountsAsItTakes) {
  EXPECT_EQ(Chosen(1 << 30), "Et*5|t*3L none");
  EXPECT_EQ(Chosen(1 << 30, false), "even none");
}

// Five layers are 20,000 bytes and keep 500 twice. As few bytes as are missing are saved.
TEST_F(ChooseLayersTest, ComputesAgainWhatDoesNotFit) {
  EXPECT_EQ(Chosen(21000), "Et*5|t*3L none");
  EXPECT_EQ(Chosen(20999), "Et*5|t*3L selective,none*7");
  EXPECT_EQ(Chosen(20600), "Et*5|t*3L selective*5,none*3");
}

// With less, four layers and the head take less than five layers with more of them computed again.
TEST_F(ChooseLayersTest, CutsElsewhereWhereLayersDoNotFit) {
  EXPECT_EQ(Chosen(20000), "even none");
  EXPECT_EQ(Chosen(16100), "even full*7,selective");
  EXPECT_EQ(Chosen(16000), "nothing");
}

// The head's chunk has two layers less, which the other chunks have.
TEST_F(ChooseLayersTest, ChunksOfARankShareItsLayers) {
  config_.vp = 2;
  config_.schedule = ScheduleKind::kInterleaved;
  EXPECT_EQ(Chosen(1 << 30), "Et*2|t*2|t*3|tL none");
  EXPECT_EQ(Chosen(1 << 30, false), "even none");
}

// Also where a step takes less than the search for the least is exact to.
TEST_F(ChooseLayersTest, AStepOfFewNanosecondsIsCut) {
  const auto short_profile = [](int64_t ns) {
    ModelProfile profile = Profile(ns, 100);
    profile.layers.back().forward_ns = profile.layers.back().backward_ns = 0;
    return profile;
  };
  const ModelProfile none = short_profile(3);
  const ModelProfile full = short_profile(4);
  config_.global_batch_size = 2;
  const LayerChoices choices(config_, dims_, machine_, none);
  const ProfilesByKind profiles = {&none, nullptr, &full};
  EXPECT_TRUE(choices.Choose(profiles, 1 << 30, true, &schedules_).has_value());
  EXPECT_EQ(choices.ExpectRecomputedNs(profiles, 1 << 30), 0);
}

TEST_F(ChooseLayersTest, OneStageHasAllLayers) {
  config_.pp = config_.world_size = 1;
  EXPECT_EQ(Chosen(1 << 30), "even none");
  EXPECT_EQ(Chosen(32000 + 800 - 40), "even selective,none*7");
}

// --- Layers that differ

// The layers of a model, each with its own time and frame under every kind of recomputation.
struct Differing {
  std::array<ModelProfile, kNumRecomputeKinds> by_kind;

  ProfilesByKind profiles() const { return {&by_kind[0], &by_kind[1], &by_kind[2]}; }
};

ModelDims WithoutEnds(int64_t layers) {
  ModelDims dims;
  dims.layers = layers;
  dims.places.embedding = dims.places.head = false;
  return dims;
}

Differing Draw(std::mt19937_64* random, int64_t layers) {
  const auto draw = [random](int64_t least, int64_t most) {
    return least + static_cast<int64_t>((*random)() % static_cast<uint64_t>(most - least + 1));
  };
  Differing made;
  for (int64_t l = 0; l < layers; ++l) {
    LayerProfile layer;
    layer.forward_ns = draw(1000, 4000);
    layer.backward_ns = 2 * layer.forward_ns;
    layer.frame_bytes = draw(50, 400);
    layer.param_bytes = layer.grad_bytes = draw(100, 500);
    for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
      LayerProfile of_kind = layer;
      if (k == 1) of_kind.backward_ns += draw(0, 300);
      if (k == 1) of_kind.frame_bytes -= layer.frame_bytes / 3;
      if (k == 2) of_kind.backward_ns += layer.forward_ns;
      if (k == 2) of_kind.frame_bytes = 10;
      made.by_kind[k].layers.push_back(of_kind);
    }
  }
  return made;
}

// The least of all cuts and of all that may be computed again, by bounds; nothing where none fits.
absl::optional<int64_t> LeastOfAll(const ParallelConfig& config, const ModelDims& dims,
                                   const Differing& model, const Machine& machine, int64_t memory) {
  absl::optional<int64_t> least;
  for (const ParallelConfig& cut : CutsOf(config, dims, /*free_cuts=*/true)) {
    const CheckedConfig checked = CheckConfig(cut, dims);
    const auto ways = static_cast<int64_t>(std::pow(kNumRecomputeKinds, dims.layers));
    for (int64_t way = 0; way < ways; ++way) {
      std::vector<RecomputeKind> kinds;
      for (int64_t rest = way; kinds.size() < static_cast<size_t>(dims.layers); rest /= 3) {
        kinds.push_back(kRecomputeKinds[static_cast<size_t>(rest % 3)]);
      }
      const auto mixed = MixProfiles(model.profiles(), SimplestOf(kinds));
      const PlanBound bound = BoundPlan(PlanSpread(cut, checked, *mixed), machine);
      if (bound.peak_bytes > memory) continue;
      least = std::min(least.value_or(bound.step_ns), bound.step_ns);
    }
  }
  return least;
}

TEST(LayersThatDifferTest, AreCutNearTheBestOfAllWays) {
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const Machine machine = FastNetwork();
  const ModelDims dims = WithoutEnds(6);
  int chosen = 0;
  double all = 0;
  for (int round = 0; round < 60; ++round) {
    ParallelConfig config;
    config.pp = config.world_size = 2 + round % 2;
    config.global_batch_size = 32;
    const Differing model = Draw(&random, dims.layers);
    const int64_t memory = 1500 + static_cast<int64_t>(random() % 2500);
    const LayerChoices choices(config, dims, machine, model.by_kind[0]);
    ScheduleCache schedules;
    const auto choice = choices.Choose(model.profiles(), memory, /*free_cuts=*/true, &schedules);
    const absl::optional<int64_t> least = LeastOfAll(config, dims, model, machine, memory);
    if (!least.has_value()) {
      EXPECT_FALSE(choice.has_value());
      continue;
    }
    ASSERT_TRUE(choice.has_value()) << "in " << memory;
    ASSERT_LE(choice->bound.peak_bytes, memory);
    ASSERT_GE(choice->bound.step_ns, *least);
    const double ratio = static_cast<double>(choice->bound.step_ns) / static_cast<double>(*least);
    EXPECT_LE(ratio, 1.1) << choice->config.layout.layout.value_or("even") << " "
                          << ToString(choice->config.recompute);
    all += ratio;
    ++chosen;
  }
  EXPECT_GE(chosen, 30);
  std::cout << "on average " << all / chosen << " times the least, of " << chosen << std::endl;
  EXPECT_LE(all / chosen, 1.005);
}

// Of two chunks a rank stages are even, and what is computed again is said of each layer.
TEST(LayersThatDifferTest, OfSeveralChunksEachLayerIsChosenFor) {
  std::mt19937_64 random(1);
  const Machine machine = FastNetwork();
  const ModelDims dims = WithoutEnds(8);
  ParallelConfig config;
  config.pp = config.world_size = config.vp = 2;
  config.schedule = ScheduleKind::kInterleaved;
  config.global_batch_size = 32;
  const Differing model = Draw(&random, dims.layers);
  const LayerChoices choices(config, dims, machine, model.by_kind[0]);
  ScheduleCache schedules;
  const auto all = choices.Choose(model.profiles(), 1 << 30, true, &schedules);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(ToString(all->config.recompute), "none");
  const auto less = choices.Choose(model.profiles(), all->bound.peak_bytes - 200, true, &schedules);
  ASSERT_TRUE(less.has_value());
  EXPECT_FALSE(less->config.layout.layout.has_value());
  EXPECT_FALSE(less->config.recompute.by_layer().empty());
}

// As many layers as stages need: there is one way, and it is found at once.
TEST(CutsOfTest, StagesTakeWhatOthersLeave) {
  ModelDims dims;
  dims.layers = 126;
  ParallelConfig config;
  config.pp = config.world_size = 32;
  config.vp = 4;
  config.schedule = ScheduleKind::kInterleaved;
  config.global_batch_size = 32;
  ASSERT_EQ(CheckConfig(config, dims).violations.ToString(), "");
  EXPECT_EQ(CutsOf(config, dims, /*free_cuts=*/true).size(), 1u);
}

TEST(LayoutTextTest, SaysStagesThatAreAlikeOnce) {
  EXPECT_EQ(LayoutText({3, 4, 4, 4, 1}), "Et*3(|t*4)*3|tL");
  EXPECT_EQ(LayoutText({0, 1, 2, 0}), "E|t|t*2|L");
}

// Whatever ends a model names.
TEST(LayoutTextTest, IsLegal) {
  for (const bool embedding : {false, true}) {
    for (const bool head : {false, true}) {
      ModelDims dims;
      dims.layers = 5;
      dims.places.embedding = embedding;
      dims.places.head = head;
      ParallelConfig config;
      config.pp = config.world_size = 2;
      config.layout.layout = LayoutText({2, 3});
      const CheckedConfig checked = CheckConfig(config, dims);
      EXPECT_EQ(checked.violations.ToString(), "");
      EXPECT_EQ(checked.placement.stages.front().has_embedding, embedding);
      EXPECT_EQ(checked.placement.stages.back().has_head, head);
    }
  }
}

}  // namespace
}  // namespace mgc
