// A model whose names have stars of their own: they stay what they are in plans, where a star
// stands for a layer's number.

#include <set>
#include <string>

#include "graph/plan/plan.h"
#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"

namespace mgc {
namespace {

constexpr char kModel[] = R"(graph @stars logical layers=2 (
  param %"word*s": f32[vocab=257,embed=8] {decay=1, init="normal", std=0.5},
  param %"layers.0.u*p": f32[embed=8,mlp=16] {decay=1, init="normal", std=0.5},
  param %"layers.*.down": f32[mlp=16,embed=8] {decay=1, init="normal", std=0.5},
  param %"layers.1.u*p": f32[embed=8,mlp=16] {decay=1, init="normal", std=0.5},
  param %"layers.1.**": f32[mlp=16,embed=8] {decay=1, init="normal", std=0.5},
  param %head: f32[vocab=257,embed=8] {decay=1, init="normal", std=0.5},
  data %tokens: i64[batch=1,seq=4],
  data %targets: i64[batch=1,seq=4],
  data %weights: f32[batch=1,seq=4]
) {
  %x = lookup(%"word*s", %tokens) layer embedding
  %a = matmul(%x, %"layers.0.u*p") {spec="b s e, e m -> b s m"} layer 0
  %g = dropout(%a) {p=0.5, key="layers.0.*"} layer 0
  %y = matmul(%g, %"layers.*.down") {spec="b s m, m e -> b s e"} layer 0
  %b = matmul(%y, %"layers.1.u*p") {spec="b s e, e m -> b s m"} layer 1
  %h = dropout(%b) {p=0.5, key="layers.1.*"} layer 1
  %z = matmul(%h, %"layers.1.**") {spec="b s m, m e -> b s e"} layer 1
  %logits = matmul(%z, %head) {spec="b s e, v e -> b s v"} layer 2
  %top = reduce_max(%logits) {dims=[2]} layer 2
  %shift = stop_gradient(%top) layer 2
  %sum = exp_sum(%logits, %shift) layer 2
  %lse = log_shift(%sum, %shift) layer 2
  %picked = pick(%logits, %targets) layer 2
  %nll = sub(%lse, %picked) layer 2
  %loss = weighted_sum(%nll, %weights) layer 2
  %count = total(%weights) layer 2
  loss "nll" = %loss weight 1.0
  report "count" = %count
}
)";

// Of the parameters, as the plan's blocks say.
std::set<std::string> NamesOf(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanClass& rank_class : plan.classes) {
    for (const HeldBlock& held : rank_class.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        names.insert(NameForLayer(entry.name, held.layer));
      }
    }
  }
  return names;
}

TEST(StarredNamesTest, StayWhatTheyAre) {
  const absl::StatusOr<Graph> model = ParseGraph(kModel, "stars");
  ASSERT_TRUE(model.ok()) << model.status();
  CompileOptions options;
  options.parallel.world_size = 2;
  options.parallel.pp = 2;
  options.parallel.global_batch_size = 4;
  options.parallel.seq_length = 4;
  options.machine = *FindMachinePreset("cpu-threads");
  const absl::StatusOr<Plan> plan = Compile(*model, {2, 8, 2, 2, 4, 16, 257, 4}, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(NamesOf(*plan), (std::set<std::string>{"word*s", "layers.0.u*p", "layers.*.down",
                                                   "layers.1.u*p", "layers.1.**", "head"}));
  // The proof looks every parameter, key and gradient up in the model.
  EXPECT_EQ(VerifyPlan(*plan).findings.ToString(), "");
}

}  // namespace
}  // namespace mgc
