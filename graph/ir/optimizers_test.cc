#include "graph/ir/optimizers.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using Names = std::vector<std::string>;

TEST(OptimizersTest, SayWhatTheyKeepAndTake) {
  EXPECT_EQ(StatesOf(*FindOptimizer("adamw")), (Names{"m", "v"}));
  EXPECT_EQ(StatesOf(*FindOptimizer("sgd")), (Names{"m"}));
  EXPECT_EQ(StatesOf(*FindOptimizer("muon")), (Names{"m"}));
  EXPECT_EQ(ScalarsOf(*FindOptimizer("adamw")),
            (Names{"lr", "decay", "beta1", "beta2", "eps", "correction1", "correction2"}));
  EXPECT_EQ(ScalarsOf(*FindOptimizer("sgd")), (Names{"lr", "decay", "sgd_momentum"}));
  EXPECT_EQ(ScalarsOf(*FindOptimizer("muon")), (Names{"lr", "decay", "muon_momentum"}));
  EXPECT_EQ(FindOptimizer("adamax"), nullptr);
}

// What compiler, proof and trainer rely on.
TEST(OptimizersTest, HaveTheirOps) {
  std::set<absl::string_view> names;
  for (const Optimizer& optimizer : Optimizers()) {
    EXPECT_TRUE(names.insert(optimizer.name).second) << optimizer.name;
    EXPECT_EQ(optimizer.direction.empty(), optimizer.others.empty()) << optimizer.name;
    if (!optimizer.others.empty()) {
      ASSERT_NE(FindOptimizer(optimizer.others), nullptr);
      EXPECT_TRUE(FindOptimizer(optimizer.others)->direction.empty());
    }
    for (absl::string_view name : {optimizer.step, optimizer.direction}) {
      if (name.empty()) continue;
      const OpDef* op = FindOp(name);
      ASSERT_NE(op, nullptr) << name;
      const OpDef* guarded = GuardedForm(*op);
      ASSERT_NE(guarded, nullptr) << name;
      EXPECT_EQ(guarded->operands.size(), op->operands.size() + 1);
      EXPECT_EQ(guarded->results, op->results);
    }
  }
}

TEST(OptimizersTest, AStepIsGivenWhatItsParametersTake) {
  const absl::StatusOr<Graph> graph = ParseGraph(R"(graph @g logical (
  param %a: f32[2] {init="zeros", optimizer="lion"},
  param %b: f32[2] {init="zeros", optimizer="sgd"},
  param %c: f32[2] {init="zeros", train=0}
) {
  %d = add(%a, %b)
}
)",
                                                 "g");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(UpdateScalars(*graph),
            (Names{"lr", "decay", "sgd_momentum", "lion_beta1", "lion_beta2", "max_norm"}));
}

}  // namespace
}  // namespace mgc
