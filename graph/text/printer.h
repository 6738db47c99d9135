// The text form of graphs and meshes (docs/text.md), and of the parts that plans share with them.
// Deterministic: equal objects print equal texts. Every text reads back (parser.h) as an equal
// object.

#ifndef MGC_GRAPH_TEXT_PRINTER_H_
#define MGC_GRAPH_TEXT_PRINTER_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/types/attrs.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// The mesh, where the graph has one or speaks of it, and the graph; ends with a newline. Values
// appear by name only: graphs that differ in the numbering of values print alike.
std::string PrintGraph(const Graph& graph);

// `mesh @m [tp=4, dp=2]` and a newline.
std::string PrintMesh(const Mesh& mesh);

// `f32[batch=8,16,vocab=257%128]`; as TensorType::ToString, with any name.
std::string TypeText(const TensorType& type);

// `{p=0.1, spec="b k, k n -> b n"}`; `{}` for none.
std::string AttrsText(const Attrs& attrs);

// `1`, `0.5`, `"text"` or `[1,2]`.
std::string AttrValueText(const AttrValue& value);

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_PRINTER_H_
