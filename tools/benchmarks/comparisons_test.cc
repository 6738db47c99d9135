#include "tools/benchmarks/comparisons.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

// As gpt2-124m in all but its sizes.
BenchSetting Small(int64_t layers) {
  BenchSetting setting;
  setting.model = LoadModelPreset("gpt2-124m").value();
  setting.model.layers = layers;
  setting.model.hidden = 32;
  setting.model.heads = setting.model.kv_heads = 2;
  setting.model.head_dim = 16;
  setting.model.ffn = 64;
  setting.model.vocab = 128;
  setting.workers = 2;
  setting.machine = FindMachinePreset("cpu-threads").value();
  return setting;
}

class ComparisonsTest : public testing::TestWithParam<absl::string_view> {};

TEST_P(ComparisonsTest, AllSidesRunAndAreJudged) {
  for (const Comparison& comparison : ComparisonsNamed(GetParam(), Small(2))) {
    const absl::StatusOr<ComparisonResult> result = Compare(comparison, 1);
    ASSERT_TRUE(result.ok()) << comparison.title << ": " << result.status();
    for (const Timings& side : result->sides) {
      EXPECT_EQ(side.seconds.size(), side.missing.empty() ? 1 : 0) << side.name;
    }
    for (const Claim& claim : result->claims) {
      const absl::optional<Finding> finding = Judge(*result, claim);
      ASSERT_TRUE(finding.has_value());
      EXPECT_GT(finding->ratio.median, 0);
      EXPECT_NE(finding->side, finding->peer);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ComparisonsTest, testing::ValuesIn(kComparisons),
                         [](const testing::TestParamInfo<absl::string_view>& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(PipelineComparison, HasALayoutForAnyNumberOfLayers) {
  for (const int64_t layers : {1, 4, 5, 12}) {
    for (const Comparison& comparison : ComparisonsNamed(kPipeline, Small(layers))) {
      for (const SideSpec& side : comparison.sides) {
        if (side.name.find('|') == std::string::npos) continue;
        const auto made = side.make();
        EXPECT_TRUE(made.ok()) << side.name << ": " << made.status();
      }
    }
  }
}

TEST(OneRankComparison, HasPyTorchWhereItIsAskedFor) {
  BenchSetting setting = Small(2);
  setting.torch = {"no-such-program", "torch_step.py"};
  const std::vector<Comparison> with = ComparisonsNamed(kOneRank, setting);
  EXPECT_EQ(ComparisonsNamed(kOneRank, Small(2)).size(), 1);
  ASSERT_EQ(with.size(), 3);
  EXPECT_EQ(with[1].sides.size(), 3);
  EXPECT_EQ(with[1].memory_claims.size(), 2);
  EXPECT_FALSE(Compare(with[1], 1).ok());
}

}  // namespace
}  // namespace mgc
