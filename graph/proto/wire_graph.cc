#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/proto/wire.h"

namespace mgc {
namespace {

absl::Status Refuse(absl::string_view label, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [", label, "]"));
}

// The enumerator, of `count`, with this name.
template <typename Enum>
absl::StatusOr<Enum> EnumOf(absl::string_view name, int count) {
  for (int i = 0; i < count; ++i) {
    if (NameOf(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return Refuse("wire_c4", absl::StrCat("unknown name `", EscapeBytes(name), "`"));
}

void ToWire(const Node& node, wire::Node* out) {
  out->set_op(node.op->name);
  ToWire(node.attrs, out->mutable_attrs());
  for (ValueId id : node.inputs) out->add_inputs(id);
  for (ValueId id : node.outputs) out->add_outputs(id);
  out->set_phase(std::string(NameOf(node.phase)));
  out->set_layer(node.layer);
  out->set_file(node.loc.file);
  if (node.loc.file != kNone) {
    out->set_line(node.loc.line);
    out->set_column(node.loc.column);
  }
  out->set_origin(node.origin);
}

// Builds the graph again in the order of value numbers, which is the order in which it was built.
class GraphReader {
 public:
  explicit GraphReader(const wire::Graph& message) : message_(message), builder_(message.name()) {}

  absl::StatusOr<Graph> Read() {
    MGC_ASSIGN_OR_RETURN(const Level level, EnumOf<Level>(message_.level(), 4));
    MGC_ASSIGN_OR_RETURN(const Mesh mesh, FromWire(message_.mesh()));
    if (message_.num_layers() < 0 || message_.num_layers() > kMaxLayers) {
      return Refuse("wire_c5", absl::StrCat(message_.num_layers(), " layers"));
    }
    builder_.set_level(level);
    builder_.set_mesh(mesh);
    builder_.set_num_layers(message_.num_layers());
    for (const std::string& file : message_.files()) {
      if (builder_.AddFile(file) + 1 != static_cast<int>(builder_.graph().files().size())) {
        return Refuse("text_c3", absl::StrCat("file `", EscapeBytes(file), "` is listed twice"));
      }
    }
    MGC_RETURN_IF_ERROR(AddInputsAndNodes());
    for (int i = 0; i < message_.outputs_size(); ++i) {
      const absl::Status status = AddOutput(message_.outputs(i));
      if (!status.ok()) return Annotate(status, absl::StrCat("output ", i));
    }
    return std::move(builder_).Finish();
  }

 private:
  int num_values() const { return static_cast<int>(builder_.graph().values().size()); }

  absl::Status AddInputsAndNodes() {
    int input = 0;
    int node = 0;
    while (input < message_.inputs_size() || node < message_.nodes_size()) {
      const bool input_next =
          input < message_.inputs_size() && message_.inputs(input).value() == num_values();
      if (!input_next && node == message_.nodes_size()) {
        return Refuse("wire_c5", absl::StrCat("input ", input, ": value ",
                                              message_.inputs(input).value(), " out of order"));
      }
      const absl::Status status =
          input_next ? AddInput(message_.inputs(input)) : AddNode(message_.nodes(node));
      if (!status.ok()) {
        return Annotate(status,
                        input_next ? absl::StrCat("input ", input) : absl::StrCat("node ", node));
      }
      ++(input_next ? input : node);
    }
    if (num_values() != message_.values_size()) {
      return Refuse("wire_c5", absl::StrCat(message_.values_size(), " values, ", num_values(),
                                            " of them made"));
    }
    return absl::OkStatus();
  }

  // The next value as written; its number must be `id`.
  absl::StatusOr<Value> NextValue(int id) const {
    if (id != num_values() + static_cast<int>(pending_.size()) || id >= message_.values_size()) {
      return Refuse("wire_c5", absl::StrCat("value ", id, " out of order"));
    }
    const wire::Value& message = message_.values(id);
    Value value;
    value.name = message.name();
    MGC_ASSIGN_OR_RETURN(value.type, FromWire(message.type()));
    if (message.has_sharding()) {
      MGC_ASSIGN_OR_RETURN(value.sharding,
                           FromWire(message.sharding(), value.type, builder_.graph().mesh()));
    }
    if (message.primal() < kNone || message.primal() >= num_values()) {
      return Refuse("wire_c5",
                    absl::StrCat("value ", id, " is the gradient of value ", message.primal()));
    }
    value.primal = message.primal();
    bool taken = builder_.graph().FindValue(value.name) != kNone;
    for (const Value& other : pending_) taken |= other.name == value.name;
    if (taken) {
      return Refuse("text_c3",
                    absl::StrCat("two values are named `", EscapeBytes(value.name), "`"));
    }
    return value;
  }

  absl::Status AddInput(const wire::GraphInput& message) {
    MGC_ASSIGN_OR_RETURN(const InputKind kind, EnumOf<InputKind>(message.kind(), 5));
    MGC_ASSIGN_OR_RETURN(Value value, NextValue(message.value()));
    MGC_ASSIGN_OR_RETURN(Attrs attrs, FromWire(message.attrs()));
    MGC_RETURN_IF_ERROR(CheckInputAttrs(kind, attrs));
    const ValueId id = builder_.AddInput(value.name, std::move(value.type), kind, std::move(attrs),
                                         std::move(value.sharding));
    builder_.SetPrimal(id, value.primal);
    return absl::OkStatus();
  }

  absl::Status AddNode(const wire::Node& message) {
    Node node;
    MGC_ASSIGN_OR_RETURN(node.op, FindOpOrSuggest(message.op()));
    MGC_ASSIGN_OR_RETURN(node.attrs, FromWire(message.attrs()));
    MGC_ASSIGN_OR_RETURN(node.phase, EnumOf<Phase>(message.phase(), kNumPhases));
    MGC_RETURN_IF_ERROR(ReadPlaceOf(message, &node));
    std::vector<const TensorType*> operands;
    for (int id : message.inputs()) {
      if (id < 0 || id >= num_values()) {
        return Refuse("wire_c5", absl::StrCat("value ", id, " is not made before its use"));
      }
      node.inputs.push_back(id);
      operands.push_back(&builder_.graph().type(id));
    }
    MGC_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                         InferNode(*node.op, node.attrs, operands));
    MGC_RETURN_IF_ERROR(ReadResults(message, types));
    builder_.AppendRaw(std::move(node), std::exchange(pending_, {}));
    return absl::OkStatus();
  }

  absl::Status ReadPlaceOf(const wire::Node& message, Node* out) const {
    if (message.layer() < kNoLayer || message.layer() > kMaxLayers) {
      return Refuse("wire_c5", absl::StrCat("layer ", message.layer()));
    }
    if (message.file() < kNone || message.file() >= message_.files_size()) {
      return Refuse("wire_c5",
                    absl::StrCat("file ", message.file(), " of ", message_.files_size()));
    }
    if (message.line() < 0 || message.column() < 0) {
      return Refuse("wire_c5",
                    absl::StrCat("line ", message.line(), ", column ", message.column()));
    }
    out->layer = message.layer();
    out->origin = message.origin();
    if (message.file() != kNone) out->loc = {message.file(), message.line(), message.column()};
    return absl::OkStatus();
  }

  // Puts the results of a node into pending_.
  absl::Status ReadResults(const wire::Node& message, const std::vector<TensorType>& types) {
    pending_.clear();
    if (message.outputs_size() != static_cast<int>(types.size())) {
      return Refuse("text_c7",
                    absl::StrCat(types.size(), " results, not ", message.outputs_size()));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      MGC_ASSIGN_OR_RETURN(Value value, NextValue(message.outputs(static_cast<int>(i))));
      if (!TypesAgree(value.type, types[i])) {
        return Refuse("wire_c6", absl::StrCat("result ", i, " is ", types[i].ToString(), ", not ",
                                              value.type.ToString()));
      }
      pending_.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status AddOutput(const wire::GraphOutput& message) {
    GraphOutput output;
    MGC_ASSIGN_OR_RETURN(output.kind, EnumOf<OutputKind>(message.kind(), 3));
    if (message.value() < 0 || message.value() >= num_values()) {
      return Refuse("wire_c5", absl::StrCat("value ", message.value(), " of ", num_values()));
    }
    if ((message.target() != kNone) != (output.kind == OutputKind::kAssign) ||
        (message.target() != kNone && builder_.graph().FindInput(message.target()) == nullptr)) {
      return Refuse("wire_c5", absl::StrCat("target ", message.target(), " is no graph input"));
    }
    output.value = message.value();
    output.name = message.name();
    output.target = message.target();
    output.weight = message.weight();
    builder_.AddOutput(std::move(output));
    return absl::OkStatus();
  }

  const wire::Graph& message_;
  GraphBuilder builder_;
  std::vector<Value> pending_;  // results of the node being read
};

}  // namespace

void ToWire(const Graph& graph, wire::Graph* out) {
  out->set_name(graph.name());
  out->set_level(std::string(NameOf(graph.level())));
  out->set_num_layers(graph.num_layers());
  ToWire(graph.mesh(), out->mutable_mesh());
  for (const std::string& file : graph.files()) out->add_files(file);
  for (const Value& value : graph.values()) {
    wire::Value* to = out->add_values();
    to->set_name(value.name);
    ToWire(value.type, to->mutable_type());
    if (value.sharding) ToWire(*value.sharding, to->mutable_sharding());
    to->set_primal(value.primal);
  }
  for (const GraphInput& input : graph.inputs()) {
    wire::GraphInput* to = out->add_inputs();
    to->set_value(input.value);
    to->set_kind(std::string(NameOf(input.kind)));
    ToWire(input.attrs, to->mutable_attrs());
  }
  for (const Node& node : graph.nodes()) ToWire(node, out->add_nodes());
  for (const GraphOutput& output : graph.outputs()) {
    wire::GraphOutput* to = out->add_outputs();
    to->set_value(output.value);
    to->set_kind(std::string(NameOf(output.kind)));
    to->set_name(output.name);
    to->set_target(output.target);
    to->set_weight(output.weight);
  }
}

absl::StatusOr<Graph> FromWire(const wire::Graph& message) { return GraphReader(message).Read(); }

}  // namespace mgc
