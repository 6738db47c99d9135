#include "passes/graph/fuse.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

constexpr char kGradient[] = R"(mesh @m []
graph @g local layers=2 (
  param %w: f32[4,6] @m[-,-],
  accumulator %w/grad: f32[4,6] @m[-,-] {of="w"},
  data %x: f32[2,4] @m[-,-],
  data %dy: f32[2,6] @m[-,-]
) {
  %dw: f32[4,6] @m[-,-] = matmul(%x, %dy) {spec="b k, b n -> k n"} backward layer 0
  %dx: f32[2,4] @m[-,-] = matmul(%dy, %w) {spec="b n, k n -> b k"} backward layer 0
  %w/grad.next: f32[4,6] @m[-,-] = accumulate(%w/grad, %dw) backward layer LAYER
  %l: f64[] @m[] = total(MORE) backward layer 0
  assign %w/grad.next -> %w/grad
  report "l" = %l
})";

Lines FusedGradient(const char* layer, const char* more) {
  const std::string text = absl::StrReplaceAll(kGradient, {{"LAYER", layer}, {"MORE", more}});
  return Listing(Fuse(ReadGraph(text)), Phase::kBackward);
}

// In the product's place, before what follows it.
TEST(FuseTest, AProductIsAddedToItsAccumulatorAtOnce) {
  EXPECT_EQ(FusedGradient("0", "%dx"), (Lines{"w/grad.next = matmul_accumulate(w/grad, x, dy)",
                                              "dx = matmul(dy, w)", "l = total(dx)"}));
}

TEST(FuseTest, AProductReadTwiceStays) {
  EXPECT_EQ(FusedGradient("0", "%dw"),
            (Lines{"dw = matmul(x, dy)", "w/grad.next = accumulate(w/grad, dw)",
                   "dx = matmul(dy, w)", "l = total(dw)"}));
}

// A legal cut point lies between two layers, cut or not.
TEST(FuseTest, NothingFusesAcrossACutPoint) {
  const Lines fused = FusedGradient("1", "%dx");
  EXPECT_EQ(fused.size(), 4u);
  EXPECT_EQ(fused[0], "dw = matmul(x, dy)");
}

TEST(FuseTest, RowsAreAddedToTheirAccumulatorAtOnce) {
  constexpr char kTable[] = R"(mesh @m []
graph @g local layers=0 (
  param %w: f32[5,4] @m[-,-],
  accumulator %w/grad: f32[5,4] @m[-,-] {of="w"},
  data %ids: i64[2] @m[-],
  data %dy: f32[2,4] @m[-,-]
) {
  %dw: f32[5,4] @m[-,-] = lookup_grad(%w, %ids, %dy) backward
  %w/grad.next: f32[5,4] @m[-,-] = accumulate(%w/grad, %dw) backward
  assign %w/grad.next -> %w/grad
})";
  EXPECT_EQ(Listing(Fuse(ReadGraph(kTable)), Phase::kBackward),
            (Lines{"w/grad.next = lookup_grad_accumulate(w/grad, ids, dy)"}));
}

TEST(FuseTest, CrossEntropyGradient) {
  constexpr char kLoss[] = R"(mesh @m []
graph @g local layers=0 (
  data %logits: f32[batch=2,seq=3,vocab=5] @m[-,-,-],
  data %t: i64[batch=2,seq=3] @m[-,-],
  data %m: f32[batch=2,seq=3] @m[-,-],
  data %dz: f32[batch=2,seq=3] @m[-,-],
  data %dp: f32[batch=2,seq=3] @m[-,-]
) {
  %p: f32[batch=2,seq=3,vocab=5] @m[-,-,-] = pick_grad(%logits, %t, %dp) backward layer 0
  %e: f32[batch=2,seq=3,vocab=5] @m[-,-,-] = exp_sum_grad(LOGITS, %m, %dz) backward layer 0
  %g: f32[batch=2,seq=3,vocab=5] @m[-,-,-] = add(ORDER) backward layer 0
  %l: f64[] @m[] = total(%g) backward layer 0
  report "l" = %l
})";
  const auto fused = [&](const char* order, const char* logits) {
    const std::string text = absl::StrReplaceAll(kLoss, {{"ORDER", order}, {"LOGITS", logits}});
    return Listing(Fuse(ReadGraph(text)), Phase::kBackward);
  };
  const Lines expected = {"g = cross_entropy_grad(logits, m, dz, t, dp)", "l = total(g)"};
  EXPECT_EQ(fused("%p, %e", "%logits"), expected);
  EXPECT_EQ(fused("%e, %p", "%logits"), expected);
  EXPECT_EQ(fused("%e, %p", "%p").size(), 4u);  // of other logits
}

TEST(FuseTest, AProductAndTheBiasOfItsColumns) {
  constexpr char kLinear[] = R"(mesh @m []
graph @g local layers=1 (
  param %w: f32[4,2,3] @m[-,-,-],
  param %bias: f32[2,3] @m[-,-],
  data %x: f32[5,4] @m[-,-],
  data %r: f32[5,2,3] @m[-,-,-]
) {
  %p: f32[5,2,3] @m[-,-,-] = matmul(%x, %w) {spec="s e, e h d -> s h d"} layer 0
  %y: f32[5,2,3] @m[-,-,-] = add(%p, ADDED) layer 0
  %l: f64[] @m[] = total(MORE) layer 0
  report "l" = %l
})";
  const auto fused = [&](const char* added, const char* more) {
    const std::string text = absl::StrReplaceAll(kLinear, {{"ADDED", added}, {"MORE", more}});
    return Listing(Fuse(ReadGraph(text)));
  };
  EXPECT_EQ(fused("%bias", "%y"), (Lines{"y = matmul_bias(x, w, bias)", "l = total(y)"}));
  EXPECT_EQ(fused("%bias", "%p").size(), 3u);
  // A residual is no bias.
  EXPECT_EQ(fused("%r", "%y"), (Lines{"p = matmul(x, w)", "y = add(p, r)", "l = total(y)"}));
}

TEST(FuseTest, BiasAndGelu) {
  constexpr char kMlp[] = R"(mesh @m []
graph @g local layers=1 (
  data %x: f32[2,4] @m[-,-],
  data %bias: f32[4] @m[-],
  data %r: f32[2,4] @m[-,-]
) {
  %s: f32[2,4] @m[-,-] = add(OPERANDS) layer 0
  %y: f32[2,4] @m[-,-] = gelu(%s) layer 0
  %l: f64[] @m[] = total(MORE) layer 0
  report "l" = %l
})";
  const auto fused = [&](const char* operands, const char* more) {
    const std::string text = absl::StrReplaceAll(kMlp, {{"OPERANDS", operands}, {"MORE", more}});
    return Listing(Fuse(ReadGraph(text)));
  };
  EXPECT_EQ(fused("%x, %bias", "%y"), (Lines{"y = bias_gelu(x, bias)", "l = total(y)"}));
  // What backward reads again is kept apart, and a residual is no bias.
  EXPECT_EQ(fused("%x, %bias", "%s"), (Lines{"s = add(x, bias)", "y = gelu(s)", "l = total(s)"}));
  EXPECT_EQ(fused("%x, %r", "%y"), (Lines{"s = add(x, r)", "y = gelu(s)", "l = total(y)"}));
}

// A value that the graph hands out is not swallowed.
TEST(FuseTest, OutputsStay) {
  const Graph graph = ReadGraph(R"(mesh @m []
graph @g local layers=1 (
  data %x: f32[2,4] @m[-,-],
  data %bias: f32[4] @m[-]
) {
  %s: f32[2,4] @m[-,-] = add(%x, %bias) layer 0
  %y: f32[2,4] @m[-,-] = gelu(%s) layer 0
  report "s" = %s
  report "y" = %y
})");
  EXPECT_EQ(Listing(Fuse(graph)), (Lines{"s = add(x, bias)", "y = gelu(s)"}));
}

// A contribution that is no product does not wait for the end of the layer.
TEST(FuseTest, ContributionsAreAddedWhenTheyAreMade) {
  constexpr char kBias[] = R"(mesh @m []
graph @g local layers=1 (
  param %b: f32[4] @m[-],
  accumulator %b/grad: f32[4] @m[-] {of="b"},
  data %dy: f32[2,4] @m[-,-]
) {
  %db: f32[4] @m[-] = reduce_sum(%dy) {dims=[0]} backward layer 0
  %dz: f32[2,4] @m[-,-] = gelu_grad(%dy, %dy) backward layer 0
  %l: f64[] @m[] = total(%dz) backward layer 0
  %b/grad.next: f32[4] @m[-] = accumulate(%b/grad, %db) backward layer 0
  assign %b/grad.next -> %b/grad
  report "l" = %l
})";
  EXPECT_EQ(Listing(Fuse(ReadGraph(kBias)), Phase::kBackward),
            (Lines{"db = reduce_sum(dy)", "b/grad.next = accumulate(b/grad, db)",
                   "dz = gelu_grad(dy, dy)", "l = total(dz)"}));
}

}  // namespace
}  // namespace mgc
