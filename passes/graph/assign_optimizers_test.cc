#include "passes/graph/assign_optimizers.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "graph/ir/optimizers.h"
#include "graph/text/parser.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A table, a layer with a norm, three products and one of two sides mixed, and a head.
constexpr char kModel[] = R"(graph @g logical layers=1 (
  data %ids: i64[batch=2,seq=3],
  param %table: f32[vocab=5,embed=4] {init="normal", decay=1},
  param %layers.0.norm: f32[embed=4] {init="ones", decay=0},
  param %layers.0.q: f32[embed=4,heads=2,head_dim=3] {init="normal", decay=1},
  param %layers.0.out: f32[heads=2,head_dim=3,embed=4] {init="normal", decay=1},
  param %layers.0.back: f32[out=6,embed=4] {init="normal", decay=1},
  param %layers.0.still: f32[out=6,embed=4] {init="normal", decay=1, train=0},
  param %layers.0.twice: f32[embed=4,up=4] {init="normal", decay=1},
  param %head: f32[vocab=5,embed=4] {init="normal", decay=1}
) {
  %x = lookup(%table, %ids) layer embedding
  %y = mul(%x, %layers.0.norm) layer 0
  %q = matmul(%y, %layers.0.q) {spec="b s e, e h d -> b s h d"} layer 0
  %o = matmul(%q, %layers.0.out) {spec="b s h d, h d e -> b s e"} layer 0
  %k = matmul(%o, %layers.0.back) {spec="b s e, o e -> b s o"} layer 0
  %c = matmul(%k, %layers.0.back) {spec="b s o, o e -> b s e"} layer 0
  %t = matmul(%c, %layers.0.twice) {spec="b s e, e u -> b s u"} layer 0
  %z = matmul(%t, %layers.0.twice) {spec="b s e, e u -> b s u"} layer 0
  %l = matmul(%z, %head) {spec="b s e, v e -> b s v"} layer 1
  %loss = sum_squares(%l) layer 1
  %n = constant() {value=1.0} layer 1
  loss %loss weight 1.0
  report "count" = %n
}
)";

absl::StatusOr<Graph> Assign(const OptimizerConfig& config, const std::string& model = kModel) {
  absl::StatusOr<Graph> graph = ParseGraph(model, "model");
  if (!graph.ok()) return graph.status();
  return AssignOptimizers(*graph, config);
}

std::map<std::string, Attrs> AttrsOf(const Graph& graph) {
  std::map<std::string, Attrs> attrs;
  for (const GraphInput& input : graph.inputs()) {
    attrs[graph.value(input.value).name] = input.attrs;
  }
  return attrs;
}

OptimizerConfig Named(const char* name) {
  OptimizerConfig config;
  config.name = name;
  return config;
}

TEST(AssignOptimizersTest, TheFirstIsNotWritten) {
  const absl::StatusOr<Graph> graph = Assign(Named("adamw"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const auto& [name, attrs] : AttrsOf(*graph)) {
    EXPECT_EQ(attrs.Find(kOptimizerAttr), nullptr) << name;
  }
}

TEST(AssignOptimizersTest, OneOfAllStepsWhatIsTrained) {
  const absl::StatusOr<Graph> graph = Assign(Named("sgd"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::map<std::string, Attrs> attrs = AttrsOf(*graph);
  for (const char* name : {"table", "layers.0.norm", "layers.0.q", "head"}) {
    EXPECT_EQ(attrs[name].Text(kOptimizerAttr), "sgd") << name;
  }
  EXPECT_EQ(attrs["layers.0.still"].Find(kOptimizerAttr), nullptr);
}

TEST(AssignOptimizersTest, MatricesAreWhatProductsOfLayersRead) {
  const absl::StatusOr<Graph> graph = Assign(Named("muon"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::map<std::string, Attrs> attrs = AttrsOf(*graph);
  EXPECT_EQ(attrs["layers.0.q"].Text(kOptimizerAttr), "muon");
  EXPECT_EQ(attrs["layers.0.q"].Int(kRowDimsAttr), 1);
  EXPECT_EQ(attrs["layers.0.out"].Int(kRowDimsAttr), 2);
  EXPECT_EQ(attrs["layers.0.back"].Int(kRowDimsAttr), 1);  // read from both sides
  EXPECT_EQ(attrs["layers.0.twice"].Text(kOptimizerAttr), "muon");
  for (const char* name : {"table", "layers.0.norm", "layers.0.still", "head"}) {
    EXPECT_EQ(attrs[name].Find(kOptimizerAttr), nullptr) << name;
    EXPECT_EQ(attrs[name].Find(kRowDimsAttr), nullptr) << name;
  }
}

TEST(AssignOptimizersTest, FactorsOfGroupsAreMultiplied) {
  OptimizerConfig config;
  config.groups = {{"layers.*", 0.5, 1}, {"*.q", 0.5, 0}};
  const absl::StatusOr<Graph> graph = Assign(config);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::map<std::string, Attrs> attrs = AttrsOf(*graph);
  EXPECT_EQ(attrs["layers.0.q"].Real(kRateScaleAttr, 1), 0.25);
  EXPECT_EQ(attrs["layers.0.q"].Real(kDecayScaleAttr, 1), 0);
  EXPECT_EQ(attrs["layers.0.out"].Real(kRateScaleAttr, 1), 0.5);
  EXPECT_EQ(attrs["layers.0.out"].Find(kDecayScaleAttr), nullptr);
  EXPECT_EQ(attrs["table"].Find(kRateScaleAttr), nullptr);
}

TEST(AssignOptimizersTest, GroupsOfNothingAreAllNamed) {
  OptimizerConfig config;
  config.groups = {{"layers.0.qq", 0.5, 1}, {"*.still", 1, 0}, {"head", 2, 1}};
  EXPECT_THAT(
      std::string(Assign(config).status().message()),
      AllOf(HasSubstr("no trained parameter is called layers.0.qq"),
            HasSubstr("nearest legal: layers.0.q"),
            HasSubstr("no trained parameter is called *.still"), Not(HasSubstr("is called head"))));
}

TEST(AssignOptimizersTest, RefusesWhatItCannotStep) {
  EXPECT_THAT(std::string(Assign(Named("adamax")).status().message()),
              AllOf(HasSubstr("there is no optimizer adamax"), HasSubstr("adamw, adam, sgd"),
                    HasSubstr("[optimizer_c1]")));
  constexpr char kNoMatrix[] = R"(graph @g logical (param %a: f32[2] {init="ones"}) {
  %l = sum_squares(%a)
  %n = constant() {value=1.0}
  loss %l weight 1.0
  report "count" = %n
}
)";
  EXPECT_THAT(std::string(Assign(Named("muon"), kNoMatrix).status().message()),
              HasSubstr("[optimizer_c3]"));
  std::string own = kNoMatrix;
  own.replace(own.find("init="), 0, "optimizer=\"muon\", ");
  EXPECT_THAT(std::string(Assign({}, own).status().message()),
              HasSubstr("%a: has optimizer=\"muon\", and is no matrix"));
}

}  // namespace
}  // namespace mgc
