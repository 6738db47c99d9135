#include "passes/graph/overlap.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using Lines = std::vector<std::string>;

Lines Backward(const std::string& nodes) {
  const std::string text = absl::StrReplaceAll(R"(mesh @m [tp=2]
graph @g local layers=2 (
  param %w: f32[4,6] @m[-,tp],
  param %v: f32[4,6] @m[-,tp],
  accumulator %w/grad: f32[4,6] @m[-,tp] {of="w"},
  accumulator %v/grad: f32[4,6] @m[-,tp] {of="v"},
  data %x: f32[2,4] @m[-,-],
  data %dy: f32[2,6] @m[-,tp]
) {
NODES
  assign %w/grad.next -> %w/grad
  assign %v/grad.next -> %v/grad
  report "l" = %l
})",
                                               {{"NODES", nodes}});
  return Listing(Overlap(ReadGraph(text)), Phase::kBackward);
}

constexpr char kOther[] = R"(
  %v/grad.next: f32[4,6] @m[-,tp] =
      matmul_accumulate(%v/grad, %x, %dy) {spec="b k, b n -> k n"} backward layer 0)";
constexpr char kProduct[] = R"(
  %w/grad.next: f32[4,6] @m[-,tp] =
      matmul_accumulate(%w/grad, %x, %dy) {spec="b k, b n -> k n"} backward layer 0)";
constexpr char kSum[] = R"(
  %dx.part: f32[2,4] @m[-,-]+tp = matmul(%dy, %w) {spec="b n, k n -> b k"} backward layer 0
  %dx: f32[2,4] @m[-,-] = all_reduce(%dx.part) {label="f"} backward layer 0)";
constexpr char kReader[] = R"(
  %l: f64[] @m[] = total(%dx) backward layer 0)";

// The gradients of weights, in the order they had, wait until the sum has been started.
TEST(OverlapTest, WeightGradientsRunBesideTheSum) {
  const Lines expected = {"dx.part = matmul(dy, w)", "dx = all_reduce(dx.part)",
                          "w/grad.next = matmul_accumulate(w/grad, x, dy)",
                          "v/grad.next = matmul_accumulate(v/grad, x, dy)", "l = total(dx)"};
  const std::string product = kProduct;
  EXPECT_EQ(Backward(product + kOther + kSum + kReader), expected);
  EXPECT_EQ(Backward(product + kSum + kReader + kOther), expected);
  EXPECT_EQ(Backward(std::string(kSum) + kReader + kProduct + kOther), expected);
}

// A second gather does not pass the first, which somebody waits for; it stands where its operand
// is.
TEST(OverlapTest, CollectivesKeepTheirOrder) {
  const std::string sum_of_another = R"(
  %dz.part: f32[2,4] @m[-,-]+tp = matmul(%dy, %v) {spec="b n, k n -> b k"} backward layer 0
  %dz: f32[2,4] @m[-,-] = all_reduce(%dz.part) {label="f"} backward layer 0
  %both: f32[2,4] @m[-,-] = add(%dx, %dz) backward layer 0
  %l: f64[] @m[] = total(%both) backward layer 0)";
  EXPECT_EQ(Backward(std::string(kProduct) + kOther + kSum + sum_of_another),
            (Lines{"dx.part = matmul(dy, w)", "dx = all_reduce(dx.part)", "dz.part = matmul(dy, v)",
                   "dz = all_reduce(dz.part)", "w/grad.next = matmul_accumulate(w/grad, x, dy)",
                   "v/grad.next = matmul_accumulate(v/grad, x, dy)", "both = add(dx, dz)",
                   "l = total(both)"}));
}

TEST(OverlapTest, LayersWithoutCollectivesKeepTheirOrder) {
  const std::string local = R"(
  %dx: f32[2,6] @m[-,tp] = mul(%dy, %dy) backward layer 0
  %l: f64[] @m[]+tp = total(%dx) backward layer 0)";
  const std::string text = std::string(kProduct) + local + kOther;
  EXPECT_EQ(Backward(text),
            (Lines{"w/grad.next = matmul_accumulate(w/grad, x, dy)", "dx = mul(dy, dy)",
                   "l = total(dx)", "v/grad.next = matmul_accumulate(v/grad, x, dy)"}));
}

// What collects a result follows it.
TEST(OverlapTest, AContributionIsAddedAtOnce) {
  const std::string apart = R"(
  %dv: f32[4,6] @m[-,tp] = matmul(%x, %dy) {spec="b k, b n -> k n"} backward layer 0
  %v/grad.next: f32[4,6] @m[-,tp] = accumulate(%v/grad, %dv) backward layer 0)";
  EXPECT_EQ(Backward(apart + kProduct + kSum + kReader),
            (Lines{"dx.part = matmul(dy, w)", "dx = all_reduce(dx.part)", "dv = matmul(x, dy)",
                   "v/grad.next = accumulate(v/grad, dv)",
                   "w/grad.next = matmul_accumulate(w/grad, x, dy)", "l = total(dx)"}));
}

}  // namespace
}  // namespace mgc
