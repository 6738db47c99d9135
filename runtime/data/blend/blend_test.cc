#include "runtime/data/blend/blend.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// What Megatron-LM's own rule gives (tests/data/README.md).
TEST(BlendTest, AsMegatronDoes) {
  const std::string path = "tests/data/blending.json";
  const auto root = ParseJson(*ReadFile(path), path);
  ASSERT_TRUE(root.ok()) << root.status();
  int cases = 0;
  for (const JsonValue& c : root->Find("cases")->items) {
    std::vector<double> weights;
    for (const JsonValue& weight : c.Find("weights")->items) weights.push_back(weight.number);
    const Blend blend(weights);
    for (int64_t i = 0; i < c.Find("size")->integer; ++i) {
      const Blended sample = blend.At(i);
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(sample.source, static_cast<size_t>(c.Find("dataset_index")->items[at].integer));
      EXPECT_EQ(sample.sample, c.Find("dataset_sample_index")->items[at].integer);
      ++cases;
    }
  }
  EXPECT_GT(cases, 100);
}

TEST(BlendTest, AnyOrderOfQuestions) {
  const std::vector<double> weights = {0.2, 0.5, 0.05, 0.25};
  const Blend ascending(weights);
  std::vector<Blended> all;
  std::vector<int64_t> given(weights.size());
  for (int64_t i = 0; i < 20000; ++i) {
    all.push_back(ascending.At(i));
    EXPECT_EQ(all.back().sample, given[all.back().source]++);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LE(std::abs(static_cast<double>(given[i]) - weights[i] * 20000), 1);
  }
  const Blend jumping(weights);
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t at = (i * 7919) % 20000;
    EXPECT_EQ(jumping.At(at).source, all[static_cast<size_t>(at)].source) << at;
    EXPECT_EQ(jumping.At(at).sample, all[static_cast<size_t>(at)].sample) << at;
  }
}

TEST(BlendTest, FarAwayAndBack) {
  const std::vector<double> weights = {0.2, 0.5, 0.05, 0.25};
  constexpr int64_t kFar = 1000000000000;
  const Blend blend(weights);
  std::vector<int64_t> given(weights.size());
  for (int64_t i = kFar; i < kFar + 9000; ++i) {
    const Blended sample = blend.At(i);
    const double share = weights[sample.source] * static_cast<double>(i);
    EXPECT_LE(std::abs(static_cast<double>(sample.sample) - share), 2);
    int64_t& next = given[sample.source];
    EXPECT_TRUE(next == 0 || sample.sample == next) << i;
    next = sample.sample + 1;
  }
  const Blend near(weights);
  for (const int64_t i : {int64_t{5}, int64_t{70000}, int64_t{4096}}) {
    EXPECT_EQ(blend.At(i).source, near.At(i).source);
    EXPECT_EQ(blend.At(i).sample, near.At(i).sample);
  }
}

}  // namespace
}  // namespace mgc
