#include "graph/proto/wire.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "graph/ir/testing/graph_difference.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string ErrorAfter(const std::function<void(wire::Graph*)>& damage) {
  wire::Graph message;
  ToWire(OddGraph(), &message);
  damage(&message);
  return std::string(FromWire(message).status().message());
}

TEST(WireTest, GraphsReadBackWithTheirNumbering) {
  const Graph graph = OddGraph();
  const std::string bytes = SerializeGraph(graph);
  const absl::StatusOr<Graph> read = DeserializeGraph(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(GraphDifference(graph, *read, /*numbering=*/true), "");
  EXPECT_EQ(SerializeGraph(*read), bytes);
}

TEST(WireTest, MeshesReadBack) {
  const Mesh mesh = OddGraph().mesh();
  ASSERT_FALSE(mesh.products().empty());
  const absl::StatusOr<Mesh> read = DeserializeMesh(SerializeMesh(mesh));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, mesh);
}

TEST(WireTest, MachinesReadBack) {
  std::vector<Machine> machines = MachinePresets();
  machines.push_back(machines[0]);
  machines.back().cores = 2;
  machines.back().compute[0].points = {{1e6, 0.25}, {1e9, 0.875}};
  machines.back().ops = {{"gelu", "bf16", 4.5}, {"gelu", "f32", 1.25}};
  machines.back().tiers[0].points = {{4096, 0.125}, {1e6, 0.75}};
  for (const Machine& machine : machines) {
    const absl::StatusOr<Machine> read = DeserializeMachine(SerializeMachine(machine));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, machine);
  }
}

TEST(WireTest, OtherDocumentsAreRefused) {
  EXPECT_THAT(std::string(DeserializeMesh("\xFF\xFF").status().message()), HasSubstr("[wire_c1]"));
  EXPECT_THAT(std::string(DeserializeMesh("").status().message()),
              HasSubstr("of version 0, this program reads version 2 [wire_c2]"));
  EXPECT_THAT(std::string(DeserializeMesh(SerializeGraph(Graph())).status().message()),
              HasSubstr("[wire_c3]"));
}

TEST(WireTest, NamesThatDoNotExistAreRefused) {
  EXPECT_EQ(ErrorAfter([](wire::Graph*) {}), "");
  EXPECT_EQ(ErrorAfter([](wire::Graph* g) { g->set_level("x\n"); }),
            "unknown name `x\\x0A` [wire_c4]");
  EXPECT_EQ(ErrorAfter([](wire::Graph* g) { g->mutable_nodes(1)->set_op("ad"); }),
            "node 1: unknown op `ad` (did you mean add?) [text_c5]");
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_nodes(0)->set_phase(""); }),
              HasSubstr("node 0: unknown name `` [wire_c4]"));
  EXPECT_THAT(
      ErrorAfter([](wire::Graph* g) { g->mutable_values(0)->mutable_type()->set_dtype("f8"); }),
      HasSubstr("input 0: unknown element type `f8` [wire_c4]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_nodes(0)->mutable_attrs(0)->Clear(); }),
              HasSubstr("has no value [wire_c4]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_values(1)->set_name("x\n/%.1"); }),
              HasSubstr("two values are named `x\\x0A/%.1` [text_c3]"));
}

TEST(WireTest, NumbersOutOfRangeAreRefused) {
  const auto node = [](const std::function<void(wire::Node*)>& damage) {
    return ErrorAfter([&](wire::Graph* g) { damage(g->mutable_nodes(0)); });
  };
  EXPECT_THAT(node([](wire::Node* n) { n->set_inputs(0, 99); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->set_inputs(0, -1); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->set_outputs(0, 0); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->set_file(7); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->set_layer(-3); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->set_line(-3); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(node([](wire::Node* n) { n->add_outputs(1); }), HasSubstr("[text_c7]"));
  EXPECT_THAT(node([](wire::Node* n) { n->add_inputs(0); }), HasSubstr("[dropout_a0]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->set_num_layers(-1); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_inputs(0)->set_value(1); }),
              HasSubstr("[wire_c5]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->add_values(); }), HasSubstr("[wire_c5]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_outputs(0)->set_value(99); }),
              HasSubstr("output 0: value 99"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_outputs(0)->set_target(0); }),
              HasSubstr("output 0: target 0"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) { g->mutable_values(0)->set_primal(0); }),
              HasSubstr("is the gradient of value 0 [wire_c5]"));
}

TEST(WireTest, TypesAndShardingsAreChecked) {
  const auto value = [](const std::function<void(wire::Value*)>& damage) {
    return ErrorAfter([&](wire::Graph* g) { damage(g->mutable_values(2)); });
  };
  EXPECT_THAT(value([](wire::Value* v) { v->mutable_type()->mutable_dims(1)->set_size(13); }),
              HasSubstr("node 0: result 0 is f32[batch=12,a \"b\"=7%4,1], not f32[batch=12,a "
                        "\"b\"=13%4,1] [wire_c6]"));
  EXPECT_THAT(value([](wire::Value* v) { v->mutable_type()->mutable_dims(1)->set_size(-1); }),
              HasSubstr("[type_c1]"));
  EXPECT_THAT(value([](wire::Value* v) { v->mutable_sharding()->add_sum(77); }),
              HasSubstr("axis 77 of 3 [wire_c5]"));
  EXPECT_THAT(value([](wire::Value* v) { v->mutable_sharding()->add_sum(0); }),
              HasSubstr("axis 0 occurs twice [sharding_c2]"));
  EXPECT_THAT(value([](wire::Value* v) { v->mutable_sharding()->add_dims(); }),
              HasSubstr("[sharding_c1]"));
  EXPECT_THAT(ErrorAfter([](wire::Graph* g) {
                g->mutable_mesh()->mutable_axes(0)->set_size(int64_t{1} << 40);
              }),
              HasSubstr("ranks"));
}

}  // namespace
}  // namespace mgc
