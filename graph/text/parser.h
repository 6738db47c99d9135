// Reads the text form of graphs and meshes (docs/text.md).
//
//   mesh @m [tp=4, dp=2]
//   graph @mlp logical layers=2 (
//     param %w: f32[embed=16,mlp=32] {init="normal", std=0.02},
//     data %x: f32[batch=8,embed=16]
//   ) {
//     %h: f32[batch=8,mlp=32] = matmul(%x, %w) {spec="b k, k n -> b n"} layer 0 at "mlp.cc":3:1
//     %l = total(%h) because "the loss"
//     loss %l weight 1.0
//   }
//
// A value may say what it is the gradient of: `%x.grad: f32[8] of %x = ...`.
// Of a node, only the results' names, the op and its operands are required. A type that is left out
// is inferred; one that is given must agree with it in element type and sizes. Behind the
// attributes, in any order: the phase (`forward` if none is given), `layer` with a number or
// `embedding`, `at` a place in the user's source, `because` its origin.
//
// Errors are collected (graph/base/diagnostic.h); reading goes on behind a bad line, and what
// depends on it is not reported again. Labels:
//   text_c1  the bytes form no word         text_c6  a type that disagrees with the inferred one
//   text_c2  another word was expected      text_c7  another number of results
//   text_c3  a name is used twice           text_c8  a mesh or an axis that does not exist
//   text_c4  a name that does not exist     text_c9  an output that its kind does not allow
//   text_c5  an op that does not exist
// and those of graph/ir/assemble.h and of the ops.

#ifndef MGC_GRAPH_TEXT_PARSER_H_
#define MGC_GRAPH_TEXT_PARSER_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "graph/text/pieces.h"
#include "graph/text/token_reader.h"
#include "graph/types/mesh.h"

namespace mgc {

// Where a text defines its values, for errors that are found later.
using ValuePlaces = absl::flat_hash_map<std::string, TextPlace>;

// The graph in `text`. `filename` is what errors call the text; `places`, where given, is filled
// also when the text has errors. InvalidArgument lists all errors.
absl::StatusOr<Graph> ParseGraph(absl::string_view text, absl::string_view filename,
                                 ValuePlaces* places = nullptr);

// The mesh in `text`, which holds nothing else.
absl::StatusOr<Mesh> ParseMesh(absl::string_view text, absl::string_view filename);

// One graph at the cursor, on `mesh`: for texts that hold more than a graph. Errors are in the
// reader's diagnostics; false when there was one.
bool ReadGraph(TokenReader* reader, const NamedMesh& mesh, Graph* out,
               ValuePlaces* places = nullptr);

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_PARSER_H_
