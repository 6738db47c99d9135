#include "graph/text/statements.h"

#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "graph/ir/assemble.h"

namespace mgc {
namespace {

constexpr int64_t kMaxSourceLine = std::numeric_limits<int32_t>::max();

// Finds the enumerator, of `count`, whose name is the word at the cursor; false if there is none.
template <typename Enum>
bool AtEnum(const TokenReader& reader, int count, Enum* out) {
  if (reader.Peek().kind != TokenKind::kName) return false;
  for (int i = 0; i < count; ++i) {
    if (NameOf(static_cast<Enum>(i)) == reader.Peek().text) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

template <typename Enum>
bool AcceptEnum(TokenReader* reader, int count, Enum* out) {
  if (!AtEnum(*reader, count, out)) return false;
  reader->Next();
  return true;
}

bool ReadName(TokenReader* reader, WrittenName* out) {
  out->place = reader->place();
  return reader->ExpectValue(&out->name);
}

bool ReadValue(TokenReader* reader, const NamedMesh& mesh, WrittenValue* out) {
  out->place = reader->place();
  if (!reader->ExpectValue(&out->name)) return false;
  if (!reader->Accept(":")) return true;
  out->has_type = true;
  if (!ReadType(reader, &out->type)) return false;
  if (reader->Peek().kind == TokenKind::kSymbol) {
    out->sharding.emplace();
    if (!ReadSharding(reader, mesh, out->type, &*out->sharding)) return false;
  }
  if (!reader->Accept("of")) return true;
  out->primal.emplace();
  return ReadName(reader, &*out->primal);
}

bool ExpectEndOfLine(TokenReader* reader) {
  return reader->Peek().starts_line || reader->At("}") || reader->AtEnd() ||
         reader->FailExpecting("the end of the line");
}

bool ReadOperands(TokenReader* reader, std::vector<WrittenName>* out) {
  if (!reader->Expect("(")) return false;
  while (!reader->At(")")) {
    out->emplace_back();
    if (!ReadName(reader, &out->back())) return false;
    if (!reader->Accept(",")) break;
  }
  return reader->Expect(")");
}

bool ReadLayer(TokenReader* reader, int* out) {
  int64_t layer = kEmbeddingLayer;
  if (!reader->Accept("embedding") &&
      !reader->ExpectInt("the layer, a number or `embedding`,", 0, kMaxLayers, &layer)) {
    return false;
  }
  *out = static_cast<int>(layer);
  return true;
}

bool ReadLocation(TokenReader* reader, WrittenNode* out) {
  int64_t line = 0;
  int64_t column = 0;
  if (!reader->ExpectString("a file name in quotes", &out->file) || !reader->Expect(":") ||
      !reader->ExpectInt("the line", 0, kMaxSourceLine, &line) || !reader->Expect(":") ||
      !reader->ExpectInt("the column", 0, kMaxSourceLine, &column)) {
    return false;
  }
  out->line = static_cast<int32_t>(line);
  out->column = static_cast<int32_t>(column);
  out->has_location = true;
  return true;
}

// Phase, layer, location and origin, up to the end of the line.
bool ReadPlaceOf(TokenReader* reader, WrittenNode* out) {
  while (reader->Peek().kind == TokenKind::kName && !reader->Peek().starts_line) {
    if (AcceptEnum(reader, kNumPhases, &out->phase)) continue;
    if (reader->Accept("layer")) {
      if (!ReadLayer(reader, &out->layer)) return false;
    } else if (reader->Accept("at")) {
      if (!ReadLocation(reader, out)) return false;
    } else if (reader->Accept("because")) {
      if (!reader->ExpectString("the node's origin in quotes", &out->origin)) return false;
    } else {
      return reader->FailExpecting("a phase, `layer`, `at`, `because` or the end of the line");
    }
  }
  return ExpectEndOfLine(reader);
}

}  // namespace

bool ReadHeader(TokenReader* reader, WrittenHeader* out) {
  if (!reader->Accept("graph")) return reader->FailExpecting("`graph`");
  if (!reader->ExpectSymbol("the name of the graph, `@name`", &out->name)) return false;
  if (reader->Peek().kind == TokenKind::kName && !reader->At("layers") &&
      !AcceptEnum(reader, 4, &out->level)) {
    return reader->FailExpecting("`logical`, `training`, `sharded` or `local`");
  }
  if (!reader->Accept("layers")) return true;
  int64_t layers = 0;
  if (!reader->Expect("=") || !reader->ExpectInt("the number of layers", 0, kMaxLayers, &layers)) {
    return false;
  }
  out->layers = static_cast<int>(layers);
  return true;
}

bool ReadInput(TokenReader* reader, const NamedMesh& mesh, WrittenInput* out) {
  if (!AcceptEnum(reader, 5, &out->kind)) {
    return reader->FailExpecting("`param`, `state`, `accumulator`, `data` or `scalar`");
  }
  if (!ReadValue(reader, mesh, &out->value)) return false;
  if (!out->value.has_type) return reader->FailMissing("`:` and the type of the input");
  out->attrs_place = reader->At("{") ? reader->place() : out->value.place;
  return !reader->At("{") || ReadAttrs(reader, &out->attrs);
}

bool AtOutput(const TokenReader& reader) {
  OutputKind kind;
  return reader.Peek(1).text != "(" && AtEnum(reader, 3, &kind);
}

bool ReadOutput(TokenReader* reader, WrittenOutput* out) {
  if (!AcceptEnum(reader, 3, &out->kind)) return reader->FailExpecting("an output");
  if (reader->Peek().kind == TokenKind::kString &&
      (!reader->ExpectString("a name", &out->name) || !reader->Expect("="))) {
    return false;
  }
  if (!ReadName(reader, &out->value)) return false;
  if (reader->Accept("->")) {
    out->target.emplace();
    if (!ReadName(reader, &*out->target)) return false;
  }
  if (reader->Accept("weight") && !reader->ExpectReal("the weight", &out->weight)) return false;
  return ExpectEndOfLine(reader);
}

bool ReadNode(TokenReader* reader, const NamedMesh& mesh, WrittenNode* out) {
  const bool has_results = reader->Peek().kind == TokenKind::kValue;
  while (reader->Peek().kind == TokenKind::kValue) {
    out->results.emplace_back();
    if (!ReadValue(reader, mesh, &out->results.back())) return false;
    if (!reader->Accept(",")) break;
  }
  if (has_results && !reader->Expect("=")) return false;
  out->op.place = reader->place();
  if (!has_results && reader->Peek().kind != TokenKind::kName) {
    return reader->FailExpecting("a node `%name = op(...)`, an output or `}`");
  }
  if (!reader->ExpectName("the name of an op", &out->op.name)) return false;
  if (!ReadOperands(reader, &out->operands)) return false;
  if (reader->At("{") && !ReadAttrs(reader, &out->attrs)) return false;
  return ReadPlaceOf(reader, out);
}

}  // namespace mgc
