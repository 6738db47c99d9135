// The computation graph: values, and the nodes that make them.
//
// One node kind with a table of ops (graph/ir/op.h). Nodes are in program order: a node's inputs
// are graph inputs or outputs of earlier nodes. A graph is built append-only by GraphBuilder and
// immutable afterwards; passes make new graphs.
//
// The same structure serves four levels (docs/ir.md):
//   logical   the forward pass of one micro-batch on one device, with its loss terms
//   training  plus backward, gradient accumulation and the update
//   sharded   every value has a sharding; `reshard` nodes mark every change of sharding
//   local     every `reshard` has become collectives; ops work on per-rank tiles

#ifndef MGC_GRAPH_IR_GRAPH_H_
#define MGC_GRAPH_IR_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/types/attrs.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct OpDef;

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;

enum class Level : uint8_t { kLogical, kTraining, kSharded, kLocal };
absl::string_view NameOf(Level level);

// When a node runs: forward and backward once per micro-batch; prepare, before the first forward,
// and update, after the last backward, once per step.
enum class Phase : uint8_t { kPrepare, kForward, kBackward, kUpdate };
inline constexpr int kNumPhases = 4;
absl::string_view NameOf(Phase phase);
inline bool IsOfMicroBatch(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kBackward;
}

// Where a node belongs along the model: the embedding, layers 0 .. L-1, then the head (= L). Legal
// pipeline cuts lie between two neighbours. kNoLayer: nowhere (parts of the update).
inline constexpr int kEmbeddingLayer = -1;
inline constexpr int kNoLayer = -2;

struct SourceLoc {
  int32_t file = kNone;  // index into Graph::files()
  int32_t line = 0;
  int32_t column = 0;
};

struct Value {
  std::string name;  // unique in the graph, printed as `%name`
  TensorType type;   // logical, at every level
  absl::optional<Sharding> sharding;
  NodeId producer = kNone;  // kNone for graph inputs
  ValueId primal = kNone;   // the value this is the gradient of, or a contribution to it
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Phase phase = Phase::kForward;
  int layer = kNoLayer;
  SourceLoc loc;
  std::string origin;  // why it exists: the user's layer, a gradient, a rule
};

enum class InputKind : uint8_t {
  kParam,        // trained; attrs: `init` (normal | zeros | ones), `std`, `decay` (0 | 1)
  kState,        // what a step leaves for the next; attrs: `of` (the parameter, if it is of one)
  kAccumulator,  // gradient sum over micro-batches, zero at the step's start; attrs: `of`
  kData,         // one micro-batch of tokens, targets, weights
  kScalar,       // one number per step: learning rate, ...
};
absl::string_view NameOf(InputKind kind);

struct GraphInput {
  ValueId value = kNone;
  InputKind kind = InputKind::kData;
  Attrs attrs;
};

enum class OutputKind : uint8_t {
  kLoss,    // a scalar; `weight` seeds its backward
  kAssign,  // becomes the value of graph input `target` when its phase has run
  kReport,  // shown to the user under `name`
};
absl::string_view NameOf(OutputKind kind);

struct GraphOutput {
  ValueId value = kNone;
  OutputKind kind = OutputKind::kReport;
  std::string name;
  ValueId target = kNone;
  double weight = 1.0;
};

class Graph {
 public:
  const std::string& name() const { return name_; }
  Level level() const { return level_; }
  const Mesh& mesh() const { return mesh_; }  // of one rank before the sharded level
  int num_layers() const { return num_layers_; }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<std::string>& files() const { return files_; }

  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  // The sharding of a value of a sharded or local graph.
  const Sharding& sharding(ValueId id) const { return *value(id).sharding; }
  // Room for the value on one rank: its whole shape before the sharded level.
  std::vector<int64_t> local_shape(ValueId id) const;

  // kNone when there is no value of that name.
  ValueId FindValue(absl::string_view name) const;
  // Null when the value is no graph input.
  const GraphInput* FindInput(ValueId id) const;
  // `file:line:column`, or the empty string.
  std::string LocText(const SourceLoc& loc) const;

  // Users of every value, in program order; one entry per use.
  std::vector<std::vector<NodeId>> Users() const;

 private:
  friend class GraphBuilder;
  std::string name_;
  Level level_ = Level::kLogical;
  Mesh mesh_;
  int num_layers_ = 0;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<GraphInput> inputs_;  // ascending by value
  std::vector<GraphOutput> outputs_;
  std::vector<std::string> files_;
  absl::flat_hash_map<std::string, ValueId> by_name_;
};

// Appends to a graph. Every Append infers the result types through the op table and refuses what
// the op refuses; names are made unique by a suffix `.2`, `.3`, ... .
class GraphBuilder {
 public:
  explicit GraphBuilder(absl::string_view name, Level level = Level::kLogical);
  // Continues a copy of `graph`.
  explicit GraphBuilder(const Graph& graph) : graph_(graph) {}

  const Graph& graph() const { return graph_; }
  void set_level(Level level) { graph_.level_ = level; }
  void set_mesh(const Mesh& mesh) { graph_.mesh_ = mesh; }
  void set_num_layers(int layers) { graph_.num_layers_ = layers; }
  int32_t AddFile(absl::string_view path);

  ValueId AddInput(absl::string_view name, TensorType type, InputKind kind, Attrs attrs = {},
                   absl::optional<Sharding> sharding = absl::nullopt);
  // `like` gives phase, layer, location and origin; op, inputs, outputs and attrs of it are
  // ignored.
  absl::StatusOr<std::vector<ValueId>> Append(absl::string_view op, std::vector<ValueId> inputs,
                                              Attrs attrs, const Node& like,
                                              absl::Span<const std::string> names);
  // As Append for ops with one result; a refusal is a mistake of ours (MGC_CHECK).
  ValueId Emit(absl::string_view op, std::vector<ValueId> inputs, Attrs attrs, const Node& like,
               absl::string_view name);
  // Appends a node whose result values are given whole (types, shardings, names); nothing is
  // inferred. For passes that rebuild a graph.
  NodeId AppendRaw(Node node, std::vector<Value> results);

  void AddOutput(GraphOutput output) { graph_.outputs_.push_back(std::move(output)); }
  void SetPrimal(ValueId id, ValueId primal) {
    graph_.values_[static_cast<size_t>(id)].primal = primal;
  }
  void ClearOutputs() { graph_.outputs_.clear(); }
  void SetSharding(ValueId id, Sharding sharding);
  Graph Finish() && { return std::move(graph_); }

 private:
  static constexpr size_t kUsesOfOp = 8;

  std::string UniqueName(absl::string_view wanted) const;
  ValueId AddValue(Value value);
  NodeId UsedLike(const std::vector<NodeId>& nodes, absl::Span<const ValueId> inputs,
                  const Attrs& attrs) const;
  absl::StatusOr<std::vector<TensorType>> TypesOf(const OpDef& op, absl::Span<const ValueId> inputs,
                                                  const Attrs& attrs) const;

  Graph graph_;
  // Nodes of each op, used in different ways. Layers repeat each other, and the same operands and
  // attributes have the same results.
  absl::flat_hash_map<const OpDef*, std::vector<NodeId>> uses_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_IR_GRAPH_H_
