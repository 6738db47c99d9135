#include "graph/ir/testing/graph_difference.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

std::string NameOfValue(const Graph& graph, ValueId id) {
  return id == kNone ? "-" : graph.value(id).name;
}

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (ValueId id : ids) names.push_back(NameOfValue(graph, id));
  return names;
}

std::string ValueDifference(const Graph& a, ValueId i, const Graph& b, ValueId j) {
  const Value& x = a.value(i);
  const Value& y = b.value(j);
  const std::string where = absl::StrCat("value ", x.name, ": ");
  if (x.name != y.name) return absl::StrCat(where, "name ", y.name);
  if (x.type != y.type) return absl::StrCat(where, "type ", y.type.ToString());
  if (x.sharding != y.sharding) return where + "sharding";
  if (x.producer != y.producer) return where + "producer";
  if (NameOfValue(a, x.primal) != NameOfValue(b, y.primal)) return where + "primal";
  return "";
}

std::string ValuesDifference(const Graph& a, const std::vector<ValueId>& x, const Graph& b,
                             const std::vector<ValueId>& y) {
  if (x.size() != y.size()) return "number of results";
  for (size_t i = 0; i < x.size(); ++i) {
    std::string difference = ValueDifference(a, x[i], b, y[i]);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string NodeDifference(const Graph& a, const Node& x, const Graph& b, const Node& y) {
  if (x.op != y.op) return "op " + y.op->name;
  if (x.attrs != y.attrs) return "attributes";
  if (NamesOf(a, x.inputs) != NamesOf(b, y.inputs)) return "operands";
  if (x.phase != y.phase || x.layer != y.layer) return "phase or layer";
  if (a.LocText(x.loc) != b.LocText(y.loc)) return "location";
  if (x.origin != y.origin) return "origin";
  return ValuesDifference(a, x.outputs, b, y.outputs);
}

std::string OutputDifference(const Graph& a, const GraphOutput& x, const Graph& b,
                             const GraphOutput& y) {
  if (x.kind != y.kind || x.name != y.name) return "kind or name";
  if (NameOfValue(a, x.value) != NameOfValue(b, y.value)) return "value";
  if (NameOfValue(a, x.target) != NameOfValue(b, y.target)) return "target";
  return x.weight == y.weight ? "" : "weight";
}

std::string PartsDifference(const Graph& a, const Graph& b) {
  for (size_t i = 0; i < a.inputs().size(); ++i) {
    const GraphInput& x = a.inputs()[i];
    const GraphInput& y = b.inputs()[i];
    if (x.kind != y.kind || x.attrs != y.attrs) return absl::StrCat("input ", i);
    std::string difference = ValueDifference(a, x.value, b, y.value);
    if (!difference.empty()) return difference;
  }
  for (size_t n = 0; n < a.nodes().size(); ++n) {
    const std::string difference = NodeDifference(a, a.nodes()[n], b, b.nodes()[n]);
    if (!difference.empty()) return absl::StrCat("node ", n, ": ", difference);
  }
  for (size_t i = 0; i < a.outputs().size(); ++i) {
    const std::string difference = OutputDifference(a, a.outputs()[i], b, b.outputs()[i]);
    if (!difference.empty()) return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

GraphOutput MakeOutput(OutputKind kind, ValueId value, std::string name, ValueId target,
                       double weight) {
  GraphOutput output;
  output.kind = kind;
  output.value = value;
  output.name = std::move(name);
  output.target = target;
  output.weight = weight;
  return output;
}

}  // namespace

std::string GraphDifference(const Graph& a, const Graph& b, bool numbering) {
  if (a.name() != b.name() || a.level() != b.level() || a.num_layers() != b.num_layers()) {
    return "name, level or layers";
  }
  if (a.mesh() != b.mesh()) return "mesh";
  if (a.values().size() != b.values().size() || a.nodes().size() != b.nodes().size() ||
      a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size()) {
    return "number of parts";
  }
  if (numbering) {
    if (a.files() != b.files()) return "files";
    for (size_t i = 0; i < a.values().size(); ++i) {
      if (a.values()[i].name != b.values()[i].name) return absl::StrCat("number of value ", i);
    }
  }
  return PartsDifference(a, b);
}

Graph OddGraph() {
  absl::StatusOr<Mesh> mesh = Mesh::Create({{"tp.1", 2}, {"tp.0", 2}, {"dp", 3}});
  mesh = mesh->WithProduct("ep", {"dp", "tp.1"});
  GraphBuilder builder("odd \"graph\"", Level::kLocal);
  builder.set_mesh(*mesh);
  builder.set_num_layers(3);
  const TensorType type{DType::kF32, {{12, "batch", 1}, {7, "a \"b\"", 4}, {1, "", 1}}};
  Sharding cut = Sharding::Whole(3);
  cut.dims[0] = {2, 1};
  cut.storage = {0};
  const ValueId x = builder.AddInput("x\n/%.1", type, InputKind::kData, {}, cut);
  const ValueId w = builder.AddInput("layers.3.w", {DType::kF64, {{7, "vocab", 4}}},
                                     InputKind::kParam, {{"init", "normal"}, {"std", 0.1}});
  Node like;
  like.phase = Phase::kBackward;
  like.layer = 2;
  like.loc = {builder.AddFile("a \"b\"\\.cc"), 12, 3};
  like.origin = "because\tof \xFF";
  const ValueId y = builder.Emit("dropout", {x}, {{"p", 1e-300}, {"key", "k//\\"}}, like, "y/");
  Sharding owed = Sharding::Whole(3);
  owed.dims[0] = {2};
  owed.sum = {0};
  owed.max = {1};
  builder.SetSharding(y, owed);
  builder.SetPrimal(y, x);
  // An input behind a node: its number is not that of its place among the inputs.
  const ValueId acc =
      builder.AddInput("acc", type, InputKind::kAccumulator, {{"of", "layers.3.w"}});
  like.layer = kEmbeddingLayer;
  like.phase = Phase::kUpdate;
  like.loc = {builder.AddFile("z"), 1, 0};
  const ValueId next = builder.Emit("add", {acc, y, x}, {}, like, "acc.next");
  like = Node();
  const ValueId turned =
      builder.Emit("transpose", {next}, {{"perm", std::vector<int64_t>{2, 0, 1}}}, like, "");
  absl::StatusOr<std::vector<ValueId>> norm = builder.Append(
      "layer_norm",
      {builder.AddInput("n", {DType::kF32, {{2, "", 1}, {3, "embed", 1}}}, InputKind::kData),
       builder.AddInput("g", {DType::kF32, {{3, "embed", 1}}}, InputKind::kParam,
                        {{"decay", int64_t{0}}}),
       builder.AddInput("h", {DType::kF32, {{3, "embed", 1}}}, InputKind::kParam)},
      {{"eps", 1e-5}}, like, {"norm", "norm.mean", "norm.rstd"});
  MGC_CHECK(norm.ok()) << norm.status().ToString();
  const ValueId total = builder.Emit("total", {w}, {}, like, "3");
  builder.AddOutput(MakeOutput(OutputKind::kLoss, total, "", kNone, 0.1));
  builder.AddOutput(MakeOutput(OutputKind::kLoss, total, "named", kNone,
                               std::numeric_limits<double>::infinity()));
  builder.AddOutput(MakeOutput(OutputKind::kAssign, next, "as", acc, 1.0));
  builder.AddOutput(MakeOutput(OutputKind::kAssign, y, "", x, -0.0));
  builder.AddOutput(MakeOutput(OutputKind::kReport, turned, "loss \"1\"", kNone, 1.0));
  builder.AddOutput(MakeOutput(OutputKind::kReport, (*norm)[2], "", kNone, 2.0));
  return std::move(builder).Finish();
}

}  // namespace mgc
