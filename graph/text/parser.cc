#include "graph/text/parser.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/suggest.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/text/lexer.h"
#include "graph/text/printer.h"
#include "graph/text/statements.h"

namespace mgc {
namespace {

// Names compared with a misspelt one at most; keeps errors in huge graphs cheap.
constexpr size_t kMaxSuggestions = 4096;

// Looks names up, infers types and appends to the graph.
class Assembler {
 public:
  Assembler(const WrittenHeader& header, const NamedMesh& mesh, FileDiagnostics* diagnostics,
            ValuePlaces* places)
      : diagnostics_(*diagnostics), places_(*places), builder_(header.name, header.level) {
    builder_.set_mesh(mesh.mesh);
    builder_.set_num_layers(header.layers);
  }

  void AddInput(WrittenInput input) {
    if (!Declare(input.value)) return;
    CoerceAttrs(InputAttrSpecs(input.kind), &input.attrs);
    if (absl::Status status = CheckInputAttrs(input.kind, input.attrs); !status.ok()) {
      diagnostics_.Add(input.attrs_place, "",
                       absl::StrCat(ValueText(input.value.name), ": ", status.message()));
    }
    const ValueId primal = ResolvePrimal(input.value);
    const ValueId id = builder_.AddInput(input.value.name, std::move(input.value.type), input.kind,
                                         std::move(input.attrs), std::move(input.value.sharding));
    builder_.SetPrimal(id, primal);
  }

  void AddNode(WrittenNode written) {
    std::vector<Value> results;
    Node node;
    if (!MakeNode(&written, &node) || !MakeResults(written, node, &results)) {
      for (const WrittenValue& result : written.results) Poison(result);
      return;
    }
    for (const WrittenValue& result : written.results) {
      if (!Declare(result)) return;
    }
    builder_.AppendRaw(std::move(node), std::move(results));
  }

  void AddOutput(const WrittenOutput& written) {
    GraphOutput output;
    output.kind = written.kind;
    output.name = written.name;
    output.weight = written.weight;
    output.value = Resolve(written.value);
    if (written.target.has_value() != (written.kind == OutputKind::kAssign)) {
      diagnostics_.Add(written.value.place, "text_c9",
                       "`assign` has a target `-> %input`, other outputs have none");
      return;
    }
    if (written.target) output.target = Resolve(*written.target);
    if (output.target != kNone && builder_.graph().FindInput(output.target) == nullptr) {
      diagnostics_.Add(written.target->place, "text_c9",
                       absl::StrCat(ValueText(written.target->name),
                                    " is no graph input and cannot be assigned"));
    }
    builder_.AddOutput(std::move(output));
  }

  // Makes a name known that has no value, so that its uses are not reported as well.
  void Poison(const WrittenValue& value) {
    if (places_.try_emplace(value.name, value.place).second) poisoned_.insert(value.name);
  }

  Graph Finish() && { return std::move(builder_).Finish(); }

 private:
  // Notes a new name; reports one that is taken.
  bool Declare(const WrittenValue& value) {
    const auto [it, added] = places_.try_emplace(value.name, value.place);
    if (added) return true;
    diagnostics_.Add(value.place, "text_c3",
                     absl::StrCat(ValueText(value.name), " is defined twice"));
    diagnostics_.Note(it->second, "first defined");
    return false;
  }

  // The value of that name; kNone when there is none, which is reported unless its definition was.
  ValueId Resolve(const WrittenName& written) {
    const ValueId id = builder_.graph().FindValue(written.name);
    if (id != kNone || poisoned_.contains(written.name)) return id;
    std::vector<absl::string_view> names;
    for (const Value& value : builder_.graph().values()) {
      if (names.size() < kMaxSuggestions) names.push_back(value.name);
    }
    const absl::string_view nearest = NearestName(written.name, names);
    diagnostics_.Add(
        written.place, "text_c4",
        absl::StrCat(
            "no value ", ValueText(written.name), " is defined above",
            nearest.empty() ? "" : absl::StrCat(" (did you mean ", ValueText(nearest), "?)")));
    return kNone;
  }

  ValueId ResolvePrimal(const WrittenValue& value) {
    return value.primal ? Resolve(*value.primal) : kNone;
  }

  // Op, operands, attributes and place of a node.
  bool MakeNode(WrittenNode* written, Node* out) {
    bool known = true;
    for (const WrittenName& operand : written->operands) {
      out->inputs.push_back(Resolve(operand));
      known &= out->inputs.back() != kNone;
    }
    absl::StatusOr<const OpDef*> op = FindOpOrSuggest(written->op.name);
    if (!op.ok()) {
      diagnostics_.Add(written->op.place, "", op.status().message());
      return false;
    }
    out->op = *op;
    out->attrs = std::move(written->attrs);
    CoerceAttrs(out->op->attrs, &out->attrs);
    out->phase = written->phase;
    out->layer = written->layer;
    out->origin = std::move(written->origin);
    if (written->has_location) {
      out->loc = {builder_.AddFile(written->file), written->line, written->column};
    }
    return known;
  }

  // Infers the types of the results and compares them with those that are written.
  bool MakeResults(const WrittenNode& written, const Node& node, std::vector<Value>* results) {
    std::vector<const TensorType*> operands;
    for (ValueId id : node.inputs) operands.push_back(&builder_.graph().type(id));
    absl::StatusOr<std::vector<TensorType>> types = InferNode(*node.op, node.attrs, operands);
    if (!types.ok()) {
      diagnostics_.Add(written.op.place, "", types.status().message());
      NoteOperands(node);
      return false;
    }
    if (types->size() != written.results.size()) {
      diagnostics_.Add(written.op.place, "text_c7",
                       absl::StrCat(node.op->name, " gives ", types->size(), " (",
                                    absl::StrJoin(node.op->results, ", "), "), but ",
                                    written.results.size(), " are named"));
      return false;
    }
    for (size_t i = 0; i < types->size(); ++i) {
      const WrittenValue& result = written.results[i];
      if (result.has_type && !TypesAgree(result.type, (*types)[i])) {
        diagnostics_.Add(result.place, "text_c6",
                         absl::StrCat(ValueText(result.name), " is ", TypeText((*types)[i]),
                                      ", not ", TypeText(result.type)));
        NoteOperands(node);
        return false;
      }
      TensorType type = result.has_type ? result.type : (*types)[i];
      results->push_back(
          {result.name, std::move(type), result.sharding, kNone, ResolvePrimal(result)});
    }
    return true;
  }

  void NoteOperands(const Node& node) {
    if (node.inputs.empty()) return;
    diagnostics_.Note(absl::StrCat(
        "operands: ", absl::StrJoin(node.inputs, ", ", [this](std::string* out, ValueId id) {
          const Value& value = builder_.graph().value(id);
          absl::StrAppend(out, ValueText(value.name), ": ", TypeText(value.type));
        })));
  }

  FileDiagnostics& diagnostics_;
  ValuePlaces& places_;
  GraphBuilder builder_;
  absl::flat_hash_set<std::string> poisoned_;
};

// Reads `( inputs )`, going on behind a bad line.
bool ReadInputs(TokenReader* reader, const NamedMesh& mesh, Assembler* assembler) {
  if (!reader->Expect("(")) return false;
  while (!reader->At(")") && !reader->AtEnd()) {
    WrittenInput input;
    const size_t begin = reader->position();
    if (ReadInput(reader, mesh, &input)) {
      assembler->AddInput(std::move(input));
      if (!reader->Accept(",")) break;
    } else {
      if (!input.value.name.empty()) assembler->Poison(input.value);
      reader->SkipLine(begin);
      if (reader->AtEnd()) return false;
    }
  }
  return reader->Accept(")") || reader->FailMissing("`,` or `)`");
}

// Reads `{ nodes and outputs }`, going on behind a bad line.
bool ReadBody(TokenReader* reader, const NamedMesh& mesh, Assembler* assembler) {
  if (!reader->Expect("{")) return false;
  while (!reader->At("}") && !reader->AtEnd()) {
    const size_t begin = reader->position();
    if (AtOutput(*reader)) {
      WrittenOutput output;
      if (ReadOutput(reader, &output)) {
        assembler->AddOutput(output);
        continue;
      }
    } else {
      WrittenNode node;
      if (ReadNode(reader, mesh, &node)) {
        assembler->AddNode(std::move(node));
        continue;
      }
      for (const WrittenValue& result : node.results) assembler->Poison(result);
    }
    reader->SkipLine(begin);
    if (reader->AtEnd()) return false;
  }
  return reader->Expect("}");
}

}  // namespace

bool ReadGraph(TokenReader* reader, const NamedMesh& mesh, Graph* out, ValuePlaces* places) {
  ValuePlaces own_places;
  WrittenHeader header;
  if (!ReadHeader(reader, &header)) return false;
  Assembler assembler(header, mesh, &reader->diagnostics(),
                      places == nullptr ? &own_places : places);
  if (!ReadInputs(reader, mesh, &assembler) || !ReadBody(reader, mesh, &assembler)) return false;
  if (!reader->diagnostics().empty()) return false;
  *out = std::move(assembler).Finish();
  return true;
}

absl::StatusOr<Graph> ParseGraph(absl::string_view text, absl::string_view filename,
                                 ValuePlaces* places) {
  FileDiagnostics diagnostics(filename);
  TokenReader reader(text, &diagnostics);
  NamedMesh mesh;
  Graph graph;
  const bool complete =
      (!reader.At("mesh") || ReadMesh(&reader, &mesh)) && ReadGraph(&reader, mesh, &graph, places);
  if (complete && !reader.AtEnd()) reader.FailExpecting("the end of the text");
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return graph;
}

absl::StatusOr<Mesh> ParseMesh(absl::string_view text, absl::string_view filename) {
  FileDiagnostics diagnostics(filename);
  TokenReader reader(text, &diagnostics);
  NamedMesh mesh;
  if (ReadMesh(&reader, &mesh) && !reader.AtEnd()) reader.FailExpecting("the end of the text");
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return mesh.mesh;
}

}  // namespace mgc
