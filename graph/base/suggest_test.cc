#include "graph/base/suggest.h"

#include <string>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(NearestName, FindsTheClosest) {
  EXPECT_EQ(NearestName("hiden_size", {"head_dim", "hidden_size", "vocab_size"}), "hidden_size");
  EXPECT_EQ(NearestName("n_emdb", {"n_head", "n_embd"}), "n_embd");
  EXPECT_EQ(NearestName("abc", {"abd", "abe"}), "abd");
}

TEST(NearestName, GivesNothingWhenNothingIsNear) {
  EXPECT_EQ(NearestName("zzzz", {"n_head", "n_embd"}), "");
  EXPECT_EQ(NearestName("", {"n_head"}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), {"n_head"}), "");
}

TEST(DidYouMean, IsReadyToAppend) {
  EXPECT_EQ(DidYouMean("gpt2-tinny", {"gpt2-tiny"}), " (did you mean gpt2-tiny?)");
  EXPECT_EQ(DidYouMean("bert", {"gpt2-tiny"}), "");
}

}  // namespace
}  // namespace mgc
