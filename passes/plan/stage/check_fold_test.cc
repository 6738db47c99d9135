#include "passes/plan/stage/check_fold.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

// Layers 1 to 4 of six are one. Segments of their forward, by kept layer.
absl::Status Checked(int first, int between, int last) {
  const LayerMap layers({0, 1, 1, 1, 1, 2}, {1, 1, 1}, true);
  const auto part = [](int kept) { return Part{Phase::kForward, 0, kept}; };
  return CheckNeighbours({{{0, 1}, {{part(0), first}, {part(1), between}}},
                          {{1, 2}, {{part(1), between}, {part(2), last}}}},
                         layers);
}

TEST(CheckNeighboursTest, WhatStandsForOthersIsLikeAnotherOfItsKind) {
  EXPECT_TRUE(Checked(7, 7, 7).ok());
  EXPECT_TRUE(Checked(5, 7, 7).ok());
  EXPECT_TRUE(Checked(7, 7, 5).ok());
  EXPECT_EQ(Checked(5, 7, 5).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Checked(5, 6, 7).message(), "layer 1 is in forward like no other of its kind");
}

// Of others one learns nothing.
TEST(CheckNeighboursTest, NeighboursOfOtherKindsDoNotCount) {
  const LayerMap layers({0, 1, 2, 1, 2, 1, 3}, {0, 1, 2, 2}, true);
  const auto part = [](int kept) { return Part{Phase::kForward, 0, kept}; };
  EXPECT_FALSE(
      CheckNeighbours({{{0, 1}, {{part(0), 7}, {part(1), 7}, {part(2), 7}}}}, layers).ok());
}

TEST(CheckNeighboursTest, LayersThatStandForThemselvesMayBeAnything) {
  const Part parts[] = {{Phase::kForward, 0, 0}, {Phase::kForward, 0, 1}, {Phase::kForward, 0, 2}};
  EXPECT_TRUE(
      CheckNeighbours({{{0, 1, 2}, {{parts[0], 5}, {parts[1], 6}, {parts[2], 7}}}}, LayerMap(3))
          .ok());
}

}  // namespace
}  // namespace mgc
