// The same for what users write that no transformer has: residual sums of their own, pins, merged
// dims, weights that are stored otherwise than they are used.

#include <string>
#include <vector>

#include "frontends/layers.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "tests/derivation/collective_table.h"
#include "tests/derivation/local_training.h"
#include "tests/derivation/one_layer.h"

namespace mgc {
namespace {

// All layers come out alike: nothing in the last one owes what the others do not.
TEST(ReadingTest, TheOtherOperandOfAResidualSumOwesWhatItCouldCarry) {
  for (const TinyModel& model : {TinyGpt(), TinyLlama()}) {
    const Graph local = LocalGraph(model, ConfigOf(2, 1, false, 0));
    for (const CollectiveEntry& entry : CollectivesOf(local, Phase::kUpdate, kNoLayer)) {
      EXPECT_EQ(entry.name, "grad_squares.resolved");
    }
  }
}

// A user's pin wins: the value as pinned is cut as the text says, and only it.
TEST(ReadingTest, APinIsANodeBetweenTwoValues) {
  const auto pinned = [](ModelBuilder& b, Tensor x) { return TwoProducts(b, b.Pin(x, "-,-,tp")); };
  const Graph local = LocalOf(OneLayer(pinned), ConfigOf(2, 1, false, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kForward),
            (CollectiveTable{{"all-gather tp", 1}, {"all-reduce tp", 1}}));
}

// What is owed into a pin is paid on the way to it.
TEST(ReadingTest, APinOnAnOwedValueReducesThenSlices) {
  const auto pinned = [](ModelBuilder& b, Tensor x) {
    const Tensor up = Linear(b, "up", x, "embed -> mlp");
    return Add(b, {x, b.Op("gelu", {b.Pin(Linear(b, "down", up, "mlp -> embed"), "-,tp,-")})});
  };
  const Graph local = LocalOf(OneLayer(pinned), ConfigOf(2, 1, false, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kForward),
            (CollectiveTable{{"reduce-scatter tp", 1}, {"all-gather tp", 1}}));
}

Tensor Reshaped(ModelBuilder& b, Tensor x, std::vector<int64_t> sizes) {
  return b.Op("reshape", {x}, {{"sizes", std::move(sizes)}});
}

// Rows of a batch and its tokens as one dim. Tokens cut over tp are no run of rows, so they are
// gathered; gradients and sums that are owed wait until they are tokens again.
TEST(ReadingTest, AMergedDimKeepsTheAxesOfItsMinorFactor) {
  const auto rows = [](ModelBuilder& b, Tensor x) {
    const Tensor up = Linear(b, "up", Reshaped(b, x, {32, 16}), "embed -> mlp");
    const Tensor down = Linear(b, "down", b.Op("gelu", {up}), "mlp -> embed");
    return Add(
        b, {x, b.Op("reshape", {down},
                    {{"sizes", std::vector<int64_t>{4, 8, 16}}, {"names", "batch seq embed"}})});
  };
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(rows), ConfigOf(2, 2, false, 0)), Phase::kForward),
            (CollectiveTable{{"all-reduce tp", 1}}));
  EXPECT_EQ(LayerKinds(LocalOf(OneLayer(rows), ConfigOf(2, 2, false, 0)), Phase::kBackward),
            (CollectiveTable{{"all-reduce tp", 1}}));
  const Graph local = LocalOf(OneLayer(rows), ConfigOf(2, 2, true, 0));
  EXPECT_EQ(LayerKinds(local, Phase::kForward),
            (CollectiveTable{{"all-gather tp", 1}, {"reduce-scatter tp", 1}}));
  // One gather less than with tokens: rows are values of their own, which backward keeps.
  EXPECT_EQ(LayerKinds(local, Phase::kBackward),
            (CollectiveTable{{"all-gather tp", 1}, {"reduce-scatter tp", 1}}));
}

// A weight that is stored otherwise than it is used claims as if it were stored so, and so does its
// gradient: no collective more than with plain weights.
TEST(ReadingTest, AWeightBehindATransposeIsNoParameter) {
  const auto layer = [](const LayerText& up) {
    return [up](ModelBuilder& b, Tensor x) {
      return Projected(b, "down", b.Op("gelu", {up(b, b.Op("gelu", {x}))}), "mlp -> embed", x);
    };
  };
  const auto product = [](ModelBuilder& b, Tensor x, Tensor w) {
    return b.Op("matmul", {x, w}, {{"spec", "b s e, e f -> b s f"}});
  };
  const auto transposed = [&](ModelBuilder& b, Tensor x) {
    const Tensor w = b.Param("up", "mlp embed", NormalInit(0.02));
    return product(b, x, b.Op("transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}}));
  };
  const auto packed = [&](ModelBuilder& b, Tensor x) {
    const Tensor both = b.Param("up", "2 embed mlp", NormalInit(0.02));
    std::vector<Tensor> products;
    for (int64_t i = 0; i < 2; ++i) {
      const Tensor one = b.Op("slice", {both}, {{"dim", int64_t{0}}, {"begin", i}, {"end", i + 1}});
      products.push_back(product(b, x, Reshaped(b, one, {16, 24})));
    }
    return b.Op("mul", products);
  };
  for (const LayerText& up : {LayerText(transposed), LayerText(packed)}) {
    const Graph local = LocalOf(OneLayer(layer(up)), ConfigOf(2, 2, true, 0));
    EXPECT_EQ(LayerKinds(local, Phase::kForward),
              (CollectiveTable{{"all-gather tp", 1}, {"reduce-scatter tp", 1}}));
    EXPECT_EQ(LayerKinds(local, Phase::kBackward),
              (CollectiveTable{{"all-gather tp", 2}, {"reduce-scatter tp", 1}}));
  }
}

}  // namespace
}  // namespace mgc
