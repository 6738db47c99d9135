#include "passes/graph/simplify.h"

#include <string>
#include <vector>

#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

Lines Simplified(const char* text, Phase phase = Phase::kForward) {
  return Listing(Simplify(ReadGraph(text)), phase);
}

TEST(SimplifyTest, IdentitiesGo) {
  EXPECT_EQ(Simplified(R"(graph @g logical (data %x: f32[4]) {
              %a = dropout(%x) {p=0.0, key="k"}
              %b = reshard(%a) {pin=0}
              %l = total(%b)
              loss %l weight 1.0
            })"),
            (Lines{"l = total(x)"}));
}

TEST(SimplifyTest, DropoutAndPinsStay) {
  EXPECT_EQ(Simplified(R"(graph @g logical (data %x: f32[4]) {
              %a = dropout(%x) {p=0.5, key="k"}
              %b = reshard(%a) {pin=1, sharding="tp"}
              %l = total(%b)
              loss %l weight 1.0
            })"),
            (Lines{"a = dropout(x)", "b = reshard(a)", "l = total(b)"}));
}

// A stop-gradient means something until there are gradients.
TEST(SimplifyTest, StopGradientGoesAfterDifferentiation) {
  constexpr char kLogical[] = R"(graph @g logical (data %x: f32[4]) {
    %a = stop_gradient(%x)
    %l = total(%a)
    loss %l weight 1.0
  })";
  constexpr char kTraining[] = R"(graph @g training (data %x: f32[4]) {
    %a = stop_gradient(%x)
    %l = total(%a)
    report "l" = %l
  })";
  EXPECT_EQ(Simplified(kLogical), (Lines{"a = stop_gradient(x)", "l = total(a)"}));
  EXPECT_EQ(Simplified(kTraining), (Lines{"l = total(x)"}));
}

// What a reshard of the update marks, the owed sum of a gradient, is decided later.
TEST(SimplifyTest, ReshardsOfTheUpdateStay) {
  EXPECT_EQ(Simplified(R"(graph @g training (data %x: f32[4]) {
              %a = reshard(%x) {pin=0} update
              %l = total(%a) update
              report "l" = %l
            })",
                       Phase::kUpdate),
            (Lines{"a = reshard(x)", "l = total(a)"}));
}

TEST(SimplifyTest, NestedSumsAreOneSum) {
  EXPECT_EQ(Simplified(R"(graph @g logical (
              data %a: f32[2,4], data %b: f32[2,4], data %c: f32[2,4], data %d: f32[2,4]
            ) {
              %ab = add(%a, %b)
              %cd = add(%c, %d)
              %s = add(%ab, %cd)
              %l = total(%s)
              loss %l weight 1.0
            })"),
            (Lines{"s = add(a, b, c, d)", "l = total(s)"}));
}

// The first operand gives the sum its shape.
TEST(SimplifyTest, FullShapesStandFirst) {
  EXPECT_EQ(Simplified(R"(graph @g logical (
              data %x: f32[2,4], data %bias: f32[4], data %r: f32[2,4]
            ) {
              %s = add(%x, %bias)
              %t = add(%s, %r)
              %l = total(%t)
              loss %l weight 1.0
            })"),
            (Lines{"t = add(x, r, bias)", "l = total(t)"}));
}

TEST(SimplifyTest, ASumUsedTwiceStays) {
  EXPECT_EQ(Simplified(R"(graph @g logical (data %a: f32[4], data %b: f32[4]) {
              %s = add(%a, %b)
              %t = add(%s, %a)
              %u = mul(%t, %s)
              %l = total(%u)
              loss %l weight 1.0
            })"),
            (Lines{"s = add(a, b)", "t = add(s, a)", "u = mul(t, s)", "l = total(u)"}));
}

// Two layers' sums: a pipeline cut may lie between them.
TEST(SimplifyTest, SumsOfTwoLayersStay) {
  EXPECT_EQ(Simplified(R"(graph @g logical layers=2 (data %a: f32[4], data %b: f32[4]) {
              %s = add(%a, %b) layer 0
              %t = add(%s, %b) layer 1
              %l = total(%t) layer 2
              loss %l weight 1.0
            })"),
            (Lines{"s = add(a, b)", "t = add(s, b)", "l = total(t)"}));
}

TEST(SimplifyTest, SumsOfAnotherShapeStay) {
  EXPECT_EQ(Simplified(R"(graph @g logical (
              data %x: f32[2,4], data %a: f32[4], data %b: f32[4]
            ) {
              %s = add(%a, %b)
              %t = add(%x, %s)
              %l = total(%t)
              loss %l weight 1.0
            })"),
            (Lines{"s = add(a, b)", "t = add(x, s)", "l = total(t)"}));
}

TEST(SimplifyTest, EqualPositionsOfALayerAreOne) {
  EXPECT_EQ(Simplified(R"(graph @g logical layers=2 (param %w: f32[4,3]) {
              %p = iota() {size=4, name="seq"} layer 0
              %q = iota() {size=4, name="seq"} layer 0
              %r = iota() {size=3, name="seq"} layer 0
              %s = iota() {size=4, name="seq"} layer 1
              %a = lookup(%w, %p) layer 0
              %b = lookup(%w, %q) layer 0
              %c = lookup(%w, %r) layer 0
              %d = lookup(%w, %s) layer 1
              %al = total(%a) layer 2
              %bl = total(%b) layer 2
              %cl = total(%c) layer 2
              %dl = total(%d) layer 2
              loss %al weight 1.0
              loss %bl weight 1.0
              loss %cl weight 1.0
              loss %dl weight 1.0
            })"),
            (Lines{"p = iota()", "r = iota()", "s = iota()", "a = lookup(w, p)", "b = lookup(w, p)",
                   "c = lookup(w, r)", "d = lookup(w, s)", "al = total(a)", "bl = total(b)",
                   "cl = total(c)", "dl = total(d)"}));
}

TEST(SimplifyTest, WhatNoOutputNeedsGoes) {
  const Graph graph = Simplify(ReadGraph(R"(graph @g logical (data %x: f32[4], data %y: f32[4]) {
    %unused = mul(%x, %y)
    %too = total(%unused)
    %l = total(%x)
    loss %l weight 1.0
  })"));
  EXPECT_EQ(Listing(graph), (Lines{"l = total(x)"}));
  EXPECT_EQ(graph.inputs().size(), 2u);  // inputs are the graph's signature
}

TEST(SimplifyTest, TwiceIsOnce) {
  const Graph once = Simplify(ReadGraph(R"(graph @g logical (
    data %a: f32[4], data %b: f32[4], data %c: f32[4]
  ) {
    %s = add(%a, %b)
    %d = dropout(%s) {p=0.0, key="k"}
    %t = add(%d, %c)
    %l = total(%t)
    loss %l weight 1.0
  })"));
  EXPECT_EQ(Listing(Simplify(once)), Listing(once));
}

}  // namespace
}  // namespace mgc
