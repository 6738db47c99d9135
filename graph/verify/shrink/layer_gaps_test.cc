#include "graph/verify/shrink/layer_gaps.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// `runs`: how many equal layers follow each other.
std::vector<bool> Repeats(const std::vector<int>& runs) {
  std::vector<bool> repeats;
  for (const int run : runs) {
    repeats.push_back(false);
    repeats.insert(repeats.end(), static_cast<size_t>(run - 1), true);
  }
  return repeats;
}

std::string Text(int first_layer, const std::vector<bool>& repeats) {
  std::string text;
  for (const LayerGap& gap : GapsOf(first_layer, repeats)) {
    absl::StrAppend(&text, text.empty() ? "" : " ", gap.first, "-", gap.last);
  }
  return text;
}

TEST(LayerGapsTest, KeepsTheFirstTwoAndTheLastOfARun) {
  EXPECT_EQ(Text(0, Repeats({8})), "2-6");
  EXPECT_EQ(Text(0, Repeats({4})), "2-2");
  EXPECT_EQ(Text(0, Repeats({3})), "");
  EXPECT_EQ(Text(0, Repeats({1})), "");
  EXPECT_EQ(Text(0, {}), "");
}

TEST(LayerGapsTest, CountsFromTheChunksFirstLayer) { EXPECT_EQ(Text(24, Repeats({8})), "26-30"); }

TEST(LayerGapsTest, ALayerOfItsOwnEndsARunAndBeginsOne) {
  EXPECT_EQ(Text(0, Repeats({4, 1, 5})), "2-2 7-8");
  EXPECT_EQ(Text(0, Repeats({1, 1, 1, 1})), "");
}

TEST(LayerGapsTest, TheFirstLayerOfAChunkRepeatsNothingOfIt) {
  std::vector<bool> repeats = Repeats({5});
  repeats[0] = true;  // it equals the last layer of the chunk before
  EXPECT_EQ(Text(8, repeats), "10-11");
}

}  // namespace
}  // namespace mgc
