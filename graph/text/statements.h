// The lines of a graph's text as written: what they say, before names are looked up and types
// inferred. Readers report at the cursor and return false, as those of pieces.h.

#ifndef MGC_GRAPH_TEXT_STATEMENTS_H_
#define MGC_GRAPH_TEXT_STATEMENTS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "graph/text/pieces.h"
#include "graph/text/token_reader.h"
#include "graph/types/attrs.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// `%name`, with a place for messages.
struct WrittenName {
  std::string name;
  TextPlace place;
};

// `%name: type sharding of %primal`, all but the name optional; the two last need the type.
struct WrittenValue {
  std::string name;
  TextPlace place;
  bool has_type = false;
  TensorType type;
  absl::optional<Sharding> sharding;
  absl::optional<WrittenName> primal;
};

// `graph @name level layers=2`
struct WrittenHeader {
  std::string name;
  Level level = Level::kLogical;
  int layers = 0;
};

// `param %w: f32[4] {init="ones"}`
struct WrittenInput {
  InputKind kind = InputKind::kData;
  WrittenValue value;
  TextPlace attrs_place;
  Attrs attrs;
};

// `%y: f32[4] = op(%x) {...} backward layer 1 at "file.cc":1:2 because "..."`
struct WrittenNode {
  std::vector<WrittenValue> results;
  WrittenName op;
  std::vector<WrittenName> operands;
  Attrs attrs;
  Phase phase = Phase::kForward;
  int layer = kNoLayer;
  std::string file;
  int32_t line = 0;
  int32_t column = 0;
  bool has_location = false;
  std::string origin;
};

// `loss "name" = %value -> %target weight 1.0`
struct WrittenOutput {
  OutputKind kind = OutputKind::kReport;
  std::string name;
  WrittenName value;
  absl::optional<WrittenName> target;
  double weight = 1.0;
};

bool ReadHeader(TokenReader* reader, WrittenHeader* out);
bool ReadInput(TokenReader* reader, const NamedMesh& mesh, WrittenInput* out);
// True when the cursor is at an output, not at a node.
bool AtOutput(const TokenReader& reader);
bool ReadOutput(TokenReader* reader, WrittenOutput* out);
// After an error, `out` holds the results read so far.
bool ReadNode(TokenReader* reader, const NamedMesh& mesh, WrittenNode* out);

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_STATEMENTS_H_
