#include "passes/search/plans/choose_layers.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "passes/config/config_flags.h"

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

class ChooseLayersTest : public testing::Test {
 protected:
  ChooseLayersTest() {
    config_.pp = config_.world_size = 2;
    config_.global_batch_size = 64;
    dims_.layers = kLayers;
    machine_.tiers = {NetworkTier()};
    machine_.tiers.front().bandwidth = 1e18;
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
  Machine machine_;
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

TEST_F(ChooseLayersTest, OneStageHasAllLayers) {
  config_.pp = config_.world_size = 1;
  EXPECT_EQ(Chosen(1 << 30), "even none");
  EXPECT_EQ(Chosen(32000 + 800 - 40), "even selective,none*7");
}

TEST(LayoutTextTest, SaysStagesThatAreAlikeOnce) {
  ModelDims dims;
  EXPECT_EQ(LayoutText(dims, {3, 4, 4, 4, 1}), "Et*3(|t*4)*3|tL");
  EXPECT_EQ(LayoutText(dims, {0, 1, 2, 0}), "E|t|t*2|L");
  dims.places.embedding = dims.places.head = false;
  EXPECT_EQ(LayoutText(dims, {2, 2}), "t*2|t*2");
}

}  // namespace
}  // namespace mgc
