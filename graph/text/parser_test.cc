#include "graph/text/parser.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/ir/op.h"
#include "graph/ir/testing/graph_difference.h"
#include "graph/text/printer.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr char kMlp[] = R"(mesh @m [tp=4, dp=2]
graph @mlp logical layers=2 (
  param %w: f32[embed=16,mlp=32] {init="normal", std=0.02},
  data %x: f32[batch=8,embed=16] @m[dp,-]
) {
  %h: f32[8,mlp=32] @m[dp,tp] = matmul(%x, %w) {spec="b k, k n->b n"} layer 1 at "m":2:3 because "-"
  %l: f64[] = total(%h) backward layer embedding
  loss %l weight 1.0
  report "loss" = %h
}
)";

Graph ParseOk(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, "t.mgc");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseGraph(text, "t.mgc").status().message());
}

// A graph with these lines in its body and inputs %x: f32[2,3], %y: f32[3].
std::string Body(absl::string_view lines) {
  return absl::StrCat("graph @g (data %x: f32[2,3], data %y: f32[3]) {\n", lines, "\n}\n");
}

TEST(ParserTest, ReadsEveryPart) {
  const Graph graph = ParseOk(kMlp);
  EXPECT_EQ(graph.name(), "mlp");
  EXPECT_EQ(graph.level(), Level::kLogical);
  EXPECT_EQ(graph.num_layers(), 2);
  EXPECT_EQ(graph.mesh().size(1), 2);
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.inputs()[0].kind, InputKind::kParam);
  EXPECT_EQ(graph.inputs()[0].attrs.Text("init"), "normal");
  EXPECT_EQ(graph.inputs()[0].attrs.Real("std"), 0.02);
  const ValueId h = graph.FindValue("h");
  EXPECT_EQ(graph.type(h).dims[1].name, "mlp");
  EXPECT_EQ(graph.sharding(h).dims[1], AxisList{0});
  const Node& node = graph.node(graph.value(h).producer);
  EXPECT_EQ(node.op->name, "matmul");
  EXPECT_EQ(node.layer, 1);
  EXPECT_EQ(graph.LocText(node.loc), "m:2:3");
  EXPECT_EQ(node.origin, "-");
  EXPECT_EQ(graph.nodes()[1].phase, Phase::kBackward);
  EXPECT_EQ(graph.nodes()[1].layer, kEmbeddingLayer);
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(graph.outputs()[1].name, "loss");
  EXPECT_EQ(PrintGraph(graph), kMlp);
}

TEST(ParserTest, EveryFieldReadsBack) {
  const Graph graph = OddGraph();
  const std::string text = PrintGraph(graph);
  const Graph read = ParseOk(text);
  EXPECT_EQ(GraphDifference(graph, read, /*numbering=*/false), "");
  EXPECT_EQ(PrintGraph(read), text);
}

TEST(ParserTest, TypesThatAreLeftOutAreInferred) {
  const Graph graph = ParseOk(
      "graph @g (data %x: f32[batch=2,embed=3], param %unused: f32[1]) { %z = reduce_sum(%x) "
      "{dims=[0]} }");
  EXPECT_EQ(graph.type(graph.FindValue("z")).ToString(), "f32[embed=3]");
}

TEST(ParserTest, IntegersServeAsReals) {
  const Graph graph = ParseOk(Body("%z = scale(%x) {value=2}"));
  EXPECT_EQ(graph.nodes()[0].attrs.Real("value"), 2.0);
}

TEST(ParserTest, GivesThePlacesOfValues) {
  ValuePlaces places;
  EXPECT_FALSE(ParseGraph(Body("%z = inv(%x)\n  %q = nothing(%z)"), "t", &places).ok());
  EXPECT_EQ(places.at("z").line, 2);
  EXPECT_EQ(places.at("q").line, 3);
  EXPECT_EQ(places.at("q").column, 3);
}

TEST(ParserTest, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(ErrorOf(Body("%a = mul(%x, %z)\n"
                         "%b = matmull(%x, %y) {spec=\"b k, k -> b\"}\n"
                         "%c = add(%a, %b)\n"
                         "%d: f32[2,4] = sqrt(%x)\n"
                         "loss %c weight heavy\n"
                         "%x = sqrt(%y)")),
            "t.mgc:2:14: no value %z is defined above [text_c4]\n"
            "t.mgc:3:6: unknown op `matmull` (did you mean matmul?) [text_c5]\n"
            "t.mgc:5:1: %d is f32[2,3], not f32[2,4] [text_c6]\n"
            "  note: operands: %x: f32[2,3]\n"
            "t.mgc:6:16: expected the weight, found `heavy` [text_c2]\n"
            "t.mgc:7:1: %x is defined twice [text_c3]\n"
            "  note: first defined at t.mgc:1:16");
}

TEST(ParserTest, ErrorsOfOpsNameTheOperands) {
  const std::string error = ErrorOf(Body("%e = sub(%x, %y)\n%query = inv(%y)\n%f = inv(%qery)"));
  EXPECT_THAT(error, ::testing::StartsWith("t.mgc:2:6: sub: "));
  EXPECT_THAT(error, HasSubstr("]\n  note: operands: %x: f32[2,3], %y: f32[3]\n"));
  EXPECT_THAT(error, HasSubstr("no value %qery is defined above (did you mean %query?) [text_c4]"));
}

TEST(ParserTest, ReportsBadHeadersAndInputs) {
  EXPECT_EQ(ErrorOf("mesh @m [tp=2, tp=3]\ngraph @g () {}"),
            "t.mgc:1:6: mesh: axes tp and tp share a name [text_c8]");
  EXPECT_EQ(ErrorOf("graph @g nowhere () {}"),
            "t.mgc:1:10: expected `logical`, `training`, `sharded` or `local`, found "
            "`nowhere` [text_c2]");
  EXPECT_EQ(ErrorOf("graph @g (\n  weight %w: f32[2],\n  param %v: f8[2],\n"
                    "  param %u: f32[0],\n  param %t: f32[2] {init=\"x\"}) {\n %z = inv(%v) }"),
            "t.mgc:2:3: expected `param`, `state`, `accumulator`, `data` or `scalar`, found "
            "`weight` [text_c2]\n"
            "t.mgc:3:13: unknown element type f8; f32, f64, i64, bf16 and f16 exist [text_c4]\n"
            "t.mgc:4:17: the size of a dim must be between 1 and 1125899906842624, not 0 "
            "[text_c2]\n"
            "t.mgc:5:20: %t: `init` is normal, zeros or ones, not \"x\" [input_c2]");
  EXPECT_THAT(ErrorOf("graph @g (data %x: f32[1048576,1048576,1048576]) {}"),
              HasSubstr("t.mgc:1:20: a value has at most 2^50 elements"));
  EXPECT_THAT(ErrorOf("graph @g (param %x: f32[1] {decay=0.5}) {}"),
              HasSubstr("`decay` is an integer [input_c1]"));
  EXPECT_THAT(ErrorOf("graph @g (accumulator %x: f32[1]) {}"),
              HasSubstr("`of` is missing [input_c3]"));
  EXPECT_THAT(ErrorOf("graph @g (param %x: f32[1] {st=0.5}) {}"),
              HasSubstr("has no attribute `st` (did you mean std?) [input_c4]"));
}

TEST(ParserTest, ReportsBadShardings) {
  const auto error = [](absl::string_view sharding) {
    return ErrorOf(
        absl::StrCat("mesh @m [tp=2, dp=2, cp=1]\ngraph @g (data %x: f32[4,6] ", sharding, ") {}"));
  };
  EXPECT_EQ(error("@m[cp,-]"), "");
  EXPECT_THAT(error("@m[dpp,-]"), HasSubstr("2:32: the mesh has no axis dpp (did you mean "
                                            "dp?) [text_c8]"));
  EXPECT_THAT(error("@n[dp,-]"), HasSubstr("2:29: no mesh is named `@n` [text_c8]"));
  EXPECT_THAT(error("@m[dp,dp]"), HasSubstr("2:35: axis dp occurs twice [sharding_c2]"));
  EXPECT_THAT(error("@m[dp,-]+dp"), HasSubstr("axis dp occurs twice [sharding_c2]"));
  EXPECT_THAT(error("@m[dp]"), HasSubstr("sharding has 1 dims, the value 2 [sharding_c1]"));
  EXPECT_EQ(error("@m[-,dp*tp]"), "");  // uneven
  EXPECT_THAT(error("@m[dp,"), HasSubstr("expected the name of an axis or `-`, found `)`"));
}

TEST(ParserTest, ReportsBadOutputs) {
  EXPECT_THAT(ErrorOf(Body("%z = inv(%x)\nassign %z -> %z")),
              HasSubstr("3:14: %z is no graph input and cannot be assigned [text_c9]"));
  EXPECT_THAT(ErrorOf(Body("assign %x")), HasSubstr("[text_c9]"));
  EXPECT_THAT(ErrorOf(Body("loss %x -> %y")), HasSubstr("[text_c9]"));
  EXPECT_THAT(ErrorOf(Body("report \"a\" %x")), HasSubstr("expected `=`, found `%x`"));
}

TEST(ParserTest, ReportsBadNodes) {
  EXPECT_THAT(ErrorOf(Body("%a, %b = inv(%x)")),
              HasSubstr("inv gives 1 (y), but 2 are named [text_c7]"));
  EXPECT_THAT(ErrorOf(Body("%a = inv(%x) forwards")),
              HasSubstr("expected a phase, `layer`, `at`, `because` or the end of the line, found "
                        "`forwards`"));
  EXPECT_THAT(ErrorOf(Body("%a = scale(%x) {value=1, value=2}")),
              HasSubstr("attribute value is given twice [text_c3]"));
  EXPECT_THAT(ErrorOf(Body("%a = scale(%x)")), HasSubstr("[scale_a1]"));
  EXPECT_THAT(ErrorOf(Body("%a = inv(%x) %b = inv(%x)")),
              HasSubstr("expected the end of the line"));
  EXPECT_THAT(ErrorOf(Body("%a = inv(%x) layer -3")), HasSubstr("between 0 and"));
  EXPECT_THAT(ErrorOf(Body("= 3")), HasSubstr("expected a node `%name = op(...)`"));
  EXPECT_THAT(ErrorOf("graph @g () {"), HasSubstr("expected `}`, found the end of the text"));
  EXPECT_THAT(ErrorOf("graph @g () {} x"), HasSubstr("expected the end of the text, found `x`"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("1:1: expected `graph`, found the end of the text"));
}

TEST(ParserTest, MeshesReadBack) {
  const char* const text = "mesh @m [tp=2, dp.1=2, dp.0=3; ep=dp.1*tp, all=dp.0*dp.1*tp]\n";
  const absl::StatusOr<Mesh> mesh = ParseMesh(text, "t");
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(PrintMesh(*mesh), text);
  EXPECT_EQ(mesh->world_size(), 12);
  EXPECT_EQ(PrintMesh(*ParseMesh("mesh @m []", "t")), "mesh @m []\n");
  EXPECT_FALSE(ParseMesh("mesh @m [tp=2] x", "t").ok());
  EXPECT_FALSE(ParseMesh("mesh @m [tp=2; tp=tp]", "t").ok());
}

}  // namespace
}  // namespace mgc
