#include "graph/text/printer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"
#include "graph/text/lexer.h"

namespace mgc {
namespace {

class GraphPrinter {
 public:
  explicit GraphPrinter(const Graph& graph) : graph_(graph) {}

  std::string Print() {
    if (NamesMesh()) absl::StrAppend(&text_, PrintMesh(graph_.mesh()));
    absl::StrAppend(&text_, "graph ", SymbolText(graph_.name()), " ", NameOf(graph_.level()));
    if (graph_.num_layers() != 0) absl::StrAppend(&text_, " layers=", graph_.num_layers());
    PrintInputs();
    text_ += " {\n";
    for (const Node& node : graph_.nodes()) PrintNode(node);
    for (const GraphOutput& output : graph_.outputs()) PrintOutput(output);
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  bool NamesMesh() const {
    return graph_.mesh() != Mesh() ||
           std::any_of(graph_.values().begin(), graph_.values().end(),
                       [](const Value& value) { return value.sharding.has_value(); });
  }

  // `%name: type sharding of %primal`
  void PrintTyped(ValueId id) {
    const Value& value = graph_.value(id);
    absl::StrAppend(&text_, ValueText(value.name), ": ", TypeText(value.type));
    if (value.sharding) absl::StrAppend(&text_, " ", ToString(*value.sharding, graph_.mesh()));
    if (value.primal != kNone) {
      absl::StrAppend(&text_, " of ", ValueText(graph_.value(value.primal).name));
    }
  }

  void PrintInputs() {
    text_ += " (";
    const char* separator = "\n  ";
    for (const GraphInput& input : graph_.inputs()) {
      absl::StrAppend(&text_, separator, NameOf(input.kind), " ");
      separator = ",\n  ";
      PrintTyped(input.value);
      if (!input.attrs.empty()) absl::StrAppend(&text_, " ", AttrsText(input.attrs));
    }
    text_ += graph_.inputs().empty() ? ")" : "\n)";
  }

  void PrintNode(const Node& node) {
    const char* separator = "  ";
    for (ValueId id : node.outputs) {
      text_ += separator;
      separator = ", ";
      PrintTyped(id);
    }
    const auto append_name = [this](std::string* out, ValueId id) {
      out->append(ValueText(graph_.value(id).name));
    };
    absl::StrAppend(&text_, node.outputs.empty() ? "  " : " = ", NameText(node.op->name), "(",
                    absl::StrJoin(node.inputs, ", ", append_name), ")");
    if (!node.attrs.empty()) absl::StrAppend(&text_, " ", AttrsText(node.attrs));
    PrintPlaceOf(node);
    text_ += "\n";
  }

  void PrintPlaceOf(const Node& node) {
    if (node.phase != Phase::kForward) absl::StrAppend(&text_, " ", NameOf(node.phase));
    if (node.layer == kEmbeddingLayer) {
      text_ += " layer embedding";
    } else if (node.layer != kNoLayer) {
      absl::StrAppend(&text_, " layer ", node.layer);
    }
    if (node.loc.file != kNone) {
      absl::StrAppend(&text_, " at ",
                      QuotedText(graph_.files()[static_cast<size_t>(node.loc.file)]), ":",
                      node.loc.line, ":", node.loc.column);
    }
    if (!node.origin.empty()) absl::StrAppend(&text_, " because ", QuotedText(node.origin));
  }

  void PrintOutput(const GraphOutput& output) {
    absl::StrAppend(&text_, "  ", NameOf(output.kind), " ");
    if (!output.name.empty()) absl::StrAppend(&text_, QuotedText(output.name), " = ");
    text_ += ValueText(graph_.value(output.value).name);
    if (output.target != kNone) {
      absl::StrAppend(&text_, " -> ", ValueText(graph_.value(output.target).name));
    }
    if (output.kind == OutputKind::kLoss || output.weight != 1.0) {
      absl::StrAppend(&text_, " weight ", RealText(output.weight));
    }
    text_ += "\n";
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string PrintGraph(const Graph& graph) { return GraphPrinter(graph).Print(); }

std::string PrintMesh(const Mesh& mesh) { return absl::StrCat(mesh.ToString(), "\n"); }

std::string TypeText(const TensorType& type) {
  std::string text = absl::StrCat(NameOf(type.dtype), "[");
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const Dim& dim = type.dims[i];
    if (i > 0) text += ",";
    if (!dim.name.empty()) absl::StrAppend(&text, NameText(dim.name), "=");
    absl::StrAppend(&text, dim.size);
    if (dim.multiple != 1) absl::StrAppend(&text, "%", dim.multiple);
  }
  return text + "]";
}

std::string AttrValueText(const AttrValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const double* real = std::get_if<double>(&value)) return RealText(*real);
  if (const std::string* text = std::get_if<std::string>(&value)) return QuotedText(*text);
  return absl::StrCat("[", absl::StrJoin(std::get<std::vector<int64_t>>(value), ","), "]");
}

std::string AttrsText(const Attrs& attrs) {
  const auto append_entry = [](std::string* out, const Attrs::Entry& entry) {
    absl::StrAppend(out, NameText(entry.first), "=", AttrValueText(entry.second));
  };
  return absl::StrCat("{", absl::StrJoin(attrs, ", ", append_entry), "}");
}

}  // namespace mgc
