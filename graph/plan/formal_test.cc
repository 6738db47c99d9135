#include "graph/plan/formal.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(FormalTest, EveryRegionReadsBack) {
  for (int i = 0; i < kNumRegions; ++i) {
    const Formal formal{static_cast<Region>(i), ""};
    EXPECT_EQ(ParseFormal(ToString(formal)), formal) << ToString(formal);
    const Formal of_block{static_cast<Region>(i), "head"};
    const bool legal = IsOfBlock(of_block.region) || of_block.region == Region::kCopies;
    EXPECT_EQ(ParseFormal(ToString(of_block)).has_value(), legal) << ToString(of_block);
    if (legal) {
      EXPECT_EQ(ParseFormal(ToString(of_block)), of_block);
    }
  }
}

TEST(FormalTest, TextSaysRegionAndBlock) {
  EXPECT_EQ(ToString({Region::kGradOutput, ""}), "grad_output");
  EXPECT_EQ(ToString({Region::kGrads, "head"}), "grads:head");
  EXPECT_EQ(ParseFormal("states:a:b"), (Formal{Region::kStates, "a:b"}));
  EXPECT_EQ(ParseFormal("copies:embedding"), (Formal{Region::kCopies, "embedding"}));
  EXPECT_EQ(ParseFormal("frame:shared"), (Formal{Region::kFrame, kSharedFrame}));
  EXPECT_EQ(ParseFormal("grad_input:shared"), (Formal{Region::kGradInput, kSharedFrame}));
}

TEST(FormalTest, OtherTextIsNoFormal) {
  for (const char* text : {"", "grad", "params:", ":head", "frame:head", "input:head",
                           "norm:shared", "Params", "grads head"}) {
    EXPECT_FALSE(ParseFormal(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace mgc
