#include "passes/graph/recompute.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

// The two layers and the head of a training graph; every backward node reads what forward made.
constexpr char kLayers[] = R"(mesh @m []
graph @g local layers=1 (
  param %w: f32[4,4] @m[-,-],
  data %x: f32[2,4] @m[-,-]
) {
  %e: f32[2,4] @m[-,-] = gelu(%x) layer embedding
  %h: f32[2,4] @m[-,-] = matmul(%e, %w) {spec="b k, k n -> b n"} layer 0
  %y: f32[2,4] @m[-,-] = gelu(%h) layer 0
  %z: f32[2,4] @m[-,-] = gelu(%y) layer 1
  %dz: f32[2,4] @m[-,-] = gelu_grad(%z, %y) backward layer 1
  %dy: f32[2,4] @m[-,-] = gelu_grad(%dz, %h) backward layer 0
  %dw: f32[4,4] @m[-,-] = matmul(%e, %dy) {spec="b k, b n -> k n"} backward layer 0
  %db: f32[2,4] @m[-,-] = mul(%y, %dy) backward layer 0
  %de: f32[2,4] @m[-,-] = gelu_grad(%db, %x) backward layer embedding
  %l: f64[] @m[] = total(%dw) backward layer 0
  %m: f64[] @m[] = total(%de) backward layer embedding
  report "l" = %l
  report "m" = %m
})";

Lines BackwardOf(RecomputeKind kind) {
  return Listing(Recompute(ReadGraph(kLayers), kind), Phase::kBackward);
}

TEST(RecomputeTest, NoneLeavesTheGraph) {
  const Graph graph = ReadGraph(kLayers);
  const Graph same = Recompute(graph, RecomputeKind::kNone);
  EXPECT_EQ(Listing(same), Listing(graph));
  EXPECT_EQ(Listing(same, Phase::kBackward), Listing(graph, Phase::kBackward));
}

// A layer's backward computes again what it needs, from what the layer was given. What the head
// reads of it is the boundary between them, and the embedding is no layer.
TEST(RecomputeTest, FullComputesALayerAgain) {
  EXPECT_EQ(BackwardOf(RecomputeKind::kFull),
            (Lines{"dz = gelu_grad(z, y)", "h.again = matmul(e, w)", "dy = gelu_grad(dz, h.again)",
                   "dw = matmul(e, dy)", "y.again = gelu(h.again)", "db = mul(y.again, dy)",
                   "de = gelu_grad(db, x)", "l = total(dw)", "m = total(de)"}));
  EXPECT_EQ(Listing(Recompute(ReadGraph(kLayers), RecomputeKind::kFull)),
            (Lines{"e = gelu(x)", "h = matmul(e, w)", "y = gelu(h)", "z = gelu(y)"}));
}

// Of two layers the first is computed again, or the second.
TEST(RecomputeTest, LayersHaveKindsOfTheirOwn) {
  const auto backward_of = [](const char* kinds) {
    const std::string two = absl::StrReplaceAll(kLayers, {{"layers=1", "layers=2"}});
    return Listing(Recompute(ReadGraph(two), ParseRecomputation(kinds).value()), Phase::kBackward);
  };
  EXPECT_EQ(backward_of("full,none"), BackwardOf(RecomputeKind::kFull));
  EXPECT_EQ(backward_of("none,full"),
            (Lines{"z.again = gelu(y)", "dz = gelu_grad(z.again, y)", "dy = gelu_grad(dz, h)",
                   "dw = matmul(e, dy)", "db = mul(y, dy)", "de = gelu_grad(db, x)",
                   "l = total(dw)", "m = total(de)"}));
  EXPECT_EQ(backward_of("none,none"), BackwardOf(RecomputeKind::kNone));
}

// Backward gathers for itself what the recomputed forward gathers: once serves both.
TEST(RecomputeTest, AGatherIsNotMadeTwice) {
  constexpr char kGathered[] = R"(mesh @m [tp=2]
graph @g local layers=1 (
  param %w: f32[4,4] @m[-,tp],
  data %x: f32[2,4] @m[tp,-]
) {
  %n: f32[2,4] @m[tp,-] = gelu(%x) layer 0
  %f: f32[2,4] @m[-,-] = all_gather(%n) {label="f"} layer 0
  %h: f32[2,4] @m[-,tp] = matmul(%f, %w) {spec="b k, k n -> b n"} layer 0
  %y: f32[2,4] @m[-,tp] = gelu(%h) layer 0
  %z: f32[2,4] @m[-,tp] = gelu(%y) layer 1
  %dz: f32[2,4] @m[-,tp] = gelu_grad(%z, %y) backward layer 1
  %dy: f32[2,4] @m[-,tp] = gelu_grad(%dz, %h) backward layer 0
  %f.back: f32[2,4] @m[-,-] = all_gather(%n) {label="f"} backward layer 0
  %dw: f32[4,4] @m[-,tp] = matmul(%f.back, %dy) {spec="b k, b n -> k n"} backward layer 0
  %l: f64[] @m[]+tp = total(%dw) backward layer 0
  report "l" = %l
})";
  EXPECT_EQ(Listing(Recompute(ReadGraph(kGathered), RecomputeKind::kFull), Phase::kBackward),
            (Lines{"dz = gelu_grad(z, y)", "n.again = gelu(x)", "f.again = all_gather(n.again)",
                   "h.again = matmul(f.again, w)", "dy = gelu_grad(dz, h.again)",
                   "dw = matmul(f.again, dy)", "l = total(dw)"}));
}

TEST(RecomputeTest, SelectiveComputesAttentionAgain) {
  constexpr char kAttention[] = R"(mesh @m []
graph @g local layers=1 (
  data %q: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-],
  data %k: f32[batch=2,seq=4,kv_heads=2,3] @m[-,-,-,-],
  data %v: f32[batch=2,seq=4,kv_heads=2,3] @m[-,-,-,-],
  data %p: i64[seq=4] @m[-],
  data %g: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-]
) {
  %s: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-] = gelu(%q) layer 0
  %o: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-], %lse: f32[batch=2,heads=2,seq=4] @m[-,-,-] =
      attention(%s, %k, %v, %p, %p) {scale=0.5, p=0.1, key="a"} layer 0
  %t: f64[] @m[] = total(%o) layer 0
  %a: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-] = mul(%o, %g) backward layer 0
  %b: f32[batch=2,seq=4,heads=2,3] @m[-,-,-,-] = gelu_grad(%a, %s) backward layer 0
  %l: f64[] @m[] = total(%b) backward layer 0
  report "l" = %l
  report "t" = %t
})";
  const Graph graph = ReadGraph(kAttention);
  const Graph again = Recompute(graph, RecomputeKind::kSelective);
  EXPECT_EQ(Listing(again, Phase::kBackward),
            (Lines{"o.again, lse.again = attention(s, k, v, p, p)", "a = mul(o.again, g)",
                   "b = gelu_grad(a, s)", "l = total(b)"}));
}

// Scores, probabilities and what dropout leaves of them, but not their product with the values; a
// product that is as large, but of a parameter, is kept.
TEST(RecomputeTest, SelectiveComputesScoresAgain) {
  constexpr char kSmallOps[] = R"(mesh @m []
graph @g local layers=1 (
  data %q: f32[batch=2,seq=4,heads=2,1] @m[-,-,-,-],
  data %k: f32[batch=2,keys=4,heads=2,1] @m[-,-,-,-],
  data %v: f32[batch=2,keys=4,heads=2,1] @m[-,-,-,-],
  param %w: f32[1,9] @m[-,-],
  data %g: f32[batch=2,seq=4,heads=2,1] @m[-,-,-,-]
) {
  %s: f32[batch=2,heads=2,seq=4,keys=4] @m[-,-,-,-] =
      matmul(%q, %k) {spec="b s h d, b t h d -> b h s t"} layer 0
  %p: f32[batch=2,heads=2,seq=4,keys=4] @m[-,-,-,-] = softmax(%s) layer 0
  %d: f32[batch=2,heads=2,seq=4,keys=4] @m[-,-,-,-] = dropout(%p) {p=0.1, key="a"} layer 0
  %o: f32[batch=2,seq=4,heads=2,1] @m[-,-,-,-] =
      matmul(%d, %v) {spec="b h s t, b t h d -> b s h d"} layer 0
  %u: f32[batch=2,seq=4,heads=2,9] @m[-,-,-,-] =
      matmul(%o, %w) {spec="b s h d, d e -> b s h e"} layer 0
  %t: f64[] @m[] = total(%u) layer 0
  %a: f32[batch=2,heads=2,seq=4,keys=4] @m[-,-,-,-] = softmax_grad(%d, %p) backward layer 0
  %b: f32[batch=2,seq=4,heads=2,1] @m[-,-,-,-] = mul(%o, %g) backward layer 0
  %c: f32[batch=2,seq=4,heads=2,9] @m[-,-,-,-] = mul(%u, %u) backward layer 0
  %l: f64[] @m[] = total(%a) backward layer 0
  %m: f64[] @m[] = total(%b) backward layer 0
  %n: f64[] @m[] = total(%c) backward layer 0
  report "l" = %l
  report "m" = %m
  report "n" = %n
  report "t" = %t
})";
  EXPECT_EQ(
      Listing(Recompute(ReadGraph(kSmallOps), RecomputeKind::kSelective), Phase::kBackward),
      (Lines{"s.again = matmul(q, k)", "p.again = softmax(s.again)", "d.again = dropout(p.again)",
             "a = softmax_grad(d.again, p.again)", "b = mul(o, g)", "c = mul(u, u)", "l = total(a)",
             "m = total(b)", "n = total(c)"}));
}

}  // namespace
}  // namespace mgc
