#include "graph/ir/check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/assemble.h"
#include "graph/ir/check_internal.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

// The checks of every level.
class StructureCheck {
 public:
  StructureCheck(const Graph& graph, ViolationList* violations)
      : graph_(graph), violations_(*violations) {}

  void Run() {
    for (const GraphInput& input : graph_.inputs()) {
      const absl::Status status = CheckInputAttrs(input.kind, input.attrs);
      if (!status.ok()) Add(input.value, "graph_c3", std::string(status.message()));
    }
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!CheckOperands(node, static_cast<NodeId>(n))) continue;
      CheckTypes(node);
      CheckLayer(node);
      CheckPhase(node);
    }
    for (const GraphOutput& output : graph_.outputs()) CheckOutput(output);
  }

 private:
  template <typename Subject>
  void Add(const Subject& subject, absl::string_view label, absl::string_view text) {
    violations_.AddAt(subject, label, text);
  }

  bool Exists(ValueId id) const {
    return id >= 0 && id < static_cast<ValueId>(graph_.values().size());
  }

  bool CheckOperands(const Node& node, NodeId id) {
    for (ValueId operand : node.inputs) {
      if (!Exists(operand) || graph_.value(operand).producer >= id) {
        Add(node, "graph_c1", absl::StrCat("operand ", operand, " is not made before its use"));
        return false;
      }
    }
    return true;
  }

  void CheckTypes(const Node& node) {
    std::vector<const TensorType*> operands;
    for (ValueId id : node.inputs) operands.push_back(&graph_.type(id));
    const absl::StatusOr<std::vector<TensorType>> types = InferNode(*node.op, node.attrs, operands);
    if (!types.ok()) {
      Add(node, "graph_c2", std::string(types.status().message()));
    } else if (types->size() != node.outputs.size()) {
      Add(node, "graph_c2",
          absl::StrCat(node.op->name, " has ", types->size(), " results, not ",
                       node.outputs.size()));
    } else {
      for (size_t i = 0; i < types->size(); ++i) {
        const TensorType& type = graph_.type(node.outputs[i]);
        if (TypesAgree(type, (*types)[i])) continue;
        Add(node.outputs[i], "graph_c2",
            absl::StrCat("is ", type.ToString(), ", but ", node.op->name, " makes ",
                         (*types)[i].ToString()));
      }
    }
    for (ValueId id : node.outputs) {
      const ValueId primal = graph_.value(id).primal;
      if (primal == kNone) continue;
      if (!Exists(primal) || !TypesAgree(graph_.type(id), graph_.type(primal))) {
        Add(id, "graph_c6", "is the gradient of a value of another type");
      }
    }
  }

  void CheckLayer(const Node& node) {
    if (node.layer < kNoLayer || node.layer > graph_.num_layers()) {
      Add(node, "graph_c5",
          absl::StrCat("layer ", node.layer, " of a graph with ", graph_.num_layers()));
    }
    if (node.layer == kNoLayer || node.phase != Phase::kForward) return;
    for (ValueId id : node.inputs) {
      const NodeId producer = graph_.value(id).producer;
      if (producer == kNone || graph_.node(producer).layer <= node.layer) continue;
      Add(node, "graph_c5",
          absl::StrCat("layer ", node.layer, " reads ", violations_.NameOfValue(id), " of layer ",
                       graph_.node(producer).layer));
    }
  }

  void CheckPhase(const Node& node) {
    for (ValueId id : node.inputs) {
      const NodeId producer = graph_.value(id).producer;
      if (producer == kNone || graph_.node(producer).phase <= node.phase) continue;
      Add(node, "graph_c6",
          absl::StrCat("runs in the ", NameOf(node.phase), " phase and reads ",
                       violations_.NameOfValue(id), " of the ", NameOf(graph_.node(producer).phase),
                       " phase"));
    }
  }

  void CheckOutput(const GraphOutput& output) {
    if (!Exists(output.value)) return;  // readers and builders make none such
    if (output.kind != OutputKind::kAssign) return;
    if (!Exists(output.target) || graph_.value(output.target).producer != kNone) {
      Add(output.value, "graph_c4", "is assigned to what is no graph input");
      return;
    }
    if (!TypesAgree(graph_.type(output.value), graph_.type(output.target))) {
      Add(output.value, "graph_c4",
          absl::StrCat("is ", graph_.type(output.value).ToString(), " and is assigned to ",
                       violations_.NameOfValue(output.target), ", which is ",
                       graph_.type(output.target).ToString()));
    }
    if (!assigned_.insert(output.target).second) {
      Add(output.target, "graph_c4", "is assigned twice");
    }
  }

  const Graph& graph_;
  ViolationList& violations_;
  absl::flat_hash_set<ValueId> assigned_;
};

void CheckNoSharding(const Graph& graph, absl::string_view label, ViolationList* violations) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    if (!graph.values()[i].sharding) continue;
    violations->AddAt(static_cast<ValueId>(i), label,
                      absl::StrCat("has a sharding in a ", NameOf(graph.level()), " graph"));
  }
}

void CheckNoCollectives(const Graph& graph, absl::string_view label, ViolationList* violations) {
  for (const Node& node : graph.nodes()) {
    if (!node.op->collective) continue;
    violations->AddAt(node, label,
                      absl::StrCat(node.op->name,
                                   " is a collective, which only a "
                                   "local graph has"));
  }
}

// A number that a step sums up over its micro-batches.
void CheckTerm(const Graph& graph, ValueId term, absl::string_view what, absl::string_view label,
               ViolationList* violations) {
  const Value& value = graph.value(term);
  if (!IsRealScalar(value.type)) {
    violations->AddAt(
        term, label,
        absl::StrCat("is ", what, ", which is a real scalar, not ", value.type.ToString()));
  } else if (value.producer == kNone) {
    violations->AddAt(term, label, absl::StrCat("is ", what, ", which no node computes"));
  }
}

// A tensor that a step leaves for the next, of a model that is asked: a node writes into it.
void CheckKeptState(const Graph& graph, const GraphInput& input, absl::string_view label,
                    ViolationList* violations) {
  const auto fail = [&](absl::string_view text) { violations->AddAt(input.value, label, text); };
  const TensorType& type = graph.type(input.value);
  const bool has_type = type.dtype == DType::kF32 ||
                        (graph.level() != Level::kLogical && WideOf(type.dtype) == DType::kF32);
  if (type.ndim() == 0 || !has_type) fail("is a state of no parameter and no tensor of f32");
  int writers = 0;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kAssign || output.target != input.value) continue;
    ++writers;
    const NodeId producer = graph.value(output.value).producer;
    const Node* node = producer == kNone ? nullptr : &graph.node(producer);
    const bool writes = node != nullptr && node->phase == Phase::kForward &&
                        node->outputs[0] == output.value && !node->inputs.empty() &&
                        node->inputs[0] == input.value && MayTakePlace(*node->op, 0, 0);
    if (!writes) fail("is a state, and is not assigned what a node of forward writes into it");
  }
  if (writers == 0) fail("is a state that is assigned nothing");
}

void CheckLogical(const Graph& graph, ViolationList* violations) {
  CheckNoSharding(graph, "logical_c1", violations);
  for (const Node& node : graph.nodes()) {
    if (node.phase == Phase::kForward) continue;
    violations->AddAt(node, "logical_c2", absl::StrCat("is in the ", NameOf(node.phase), " phase"));
  }
  CheckNoCollectives(graph, "logical_c4", violations);
  for (const GraphInput& input : graph.inputs()) {
    if (IsKeptState(graph, input)) {
      CheckKeptState(graph, input, "logical_c5", violations);
    } else if (input.kind == InputKind::kState || input.kind == InputKind::kAccumulator) {
      violations->AddAt(
          input.value, "logical_c5",
          absl::StrCat("is of the kind `", NameOf(input.kind), "`, which a training graph adds"));
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kAssign) {
      const GraphInput* target = graph.FindInput(output.target);
      if (target != nullptr && IsKeptState(graph, *target)) continue;
      violations->AddAt(output.value, "logical_c6", "is assigned, which a training graph adds");
    } else if (output.kind == OutputKind::kLoss) {
      CheckTerm(graph, output.value, "a loss", "logical_c3", violations);
      if (!std::isfinite(output.weight)) {
        violations->AddAt(output.value, "logical_c3",
                          absl::StrCat("is a loss of weight ", output.weight));
      }
    } else if (output.name == kCountReport) {
      CheckTerm(graph, output.value, "the count of tokens", "logical_c7", violations);
    }
  }
}

// Who owns and who assigns the inputs of a training graph.
class InputCheck {
 public:
  InputCheck(const Graph& graph, ViolationList* violations)
      : graph_(graph), violations_(*violations) {
    for (const GraphOutput& output : graph.outputs()) {
      if (output.kind == OutputKind::kAssign) assigned_.emplace(output.target, output.value);
    }
    for (const GraphInput& input : graph.inputs()) {
      kinds_.emplace(input.value, input.kind);
      if (input.kind == InputKind::kAccumulator) accumulated_.insert(input.attrs.Text("of"));
    }
  }

  void Run() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kAccumulator) CheckAccumulator(input);
      if (input.kind == InputKind::kParam) CheckParam(input);
      if (input.kind == InputKind::kState) CheckState(input);
    }
  }

 private:
  // The node whose result is assigned to `input`, or null.
  const Node* AssigningNode(ValueId input) const {
    const auto it = assigned_.find(input);
    if (it == assigned_.end() || graph_.value(it->second).producer == kNone) return nullptr;
    return &graph_.node(graph_.value(it->second).producer);
  }

  bool AssignedInUpdate(ValueId input) const {
    const Node* node = AssigningNode(input);
    return node != nullptr && node->phase == Phase::kUpdate;
  }

  // `accumulate`, or a fused op that ends in it, such as matmul_accumulate.
  void CheckAccumulator(const GraphInput& input) {
    const Node* node = AssigningNode(input.value);
    if (node != nullptr && node->phase != Phase::kUpdate && !node->inputs.empty() &&
        node->inputs[0] == input.value && absl::EndsWith(node->op->name, "accumulate")) {
      return;
    }
    violations_.AddAt(input.value, "training_c3",
                      "is an accumulator and is not assigned an `accumulate` of itself");
  }

  void CheckParam(const GraphInput& input) {
    const bool accumulated = accumulated_.contains(graph_.value(input.value).name);
    if (accumulated == AssignedInUpdate(input.value)) return;
    violations_.AddAt(input.value, "training_c4",
                      accumulated ? "has an accumulator and is not assigned in the update"
                                  : "is assigned in the update and has no accumulator");
  }

  // Of a parameter, or a number of the whole step.
  void CheckState(const GraphInput& input) {
    if (IsKeptState(graph_, input)) {
      return CheckKeptState(graph_, input, "training_c5", &violations_);
    }
    if (input.attrs.Find("of") == nullptr) {
      if (!IsRealScalar(graph_.type(input.value))) {
        violations_.AddAt(input.value, "training_c5", "is a state of no parameter and no scalar");
      }
    } else {
      CheckOwner(input);
    }
    if (!AssignedInUpdate(input.value)) {
      violations_.AddAt(input.value, "training_c5", "is a state and is not assigned in the update");
    }
  }

  void CheckOwner(const GraphInput& input) {
    const ValueId owner = graph_.FindValue(input.attrs.Text("of"));
    const auto kind = kinds_.find(owner);
    if (kind == kinds_.end() || kind->second != InputKind::kParam) {
      violations_.AddAt(input.value, "training_c5",
                        absl::StrCat("is a state of `", EscapeBytes(input.attrs.Text("of")),
                                     "`, which is no parameter"));
    }
  }

  const Graph& graph_;
  ViolationList& violations_;
  absl::flat_hash_map<ValueId, ValueId> assigned_;  // input to assigned value
  absl::flat_hash_map<ValueId, InputKind> kinds_;
  absl::flat_hash_set<std::string> accumulated_;  // names that accumulators are of
};

}  // namespace

Diagnostics FindViolations(const Graph& graph) {
  ViolationList violations(graph);
  StructureCheck(graph, &violations).Run();
  switch (graph.level()) {
    case Level::kLogical:
      CheckLogical(graph, &violations);
      break;
    case Level::kTraining:
      CheckNoSharding(graph, "training_c1", &violations);
      CheckNoCollectives(graph, "training_c2", &violations);
      InputCheck(graph, &violations).Run();
      break;
    case Level::kSharded:
      CheckNoCollectives(graph, "sharded_c2", &violations);
      CheckShardings(graph, &violations);
      break;
    case Level::kLocal:
      CheckShardings(graph, &violations);
      break;
  }
  return std::move(violations).Take();
}

bool IsRealScalar(const TensorType& type) { return type.dims.empty() && type.dtype != DType::kI64; }

absl::Status CheckGraph(const Graph& graph) { return FindViolations(graph).ToStatus(); }

}  // namespace mgc
