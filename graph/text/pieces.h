// Readers of the parts that graphs, machines and plans are made of. Each reads one part at the
// cursor, or reports and returns false; what it returns passes the checks of graph/ir/assemble.h.

#ifndef MGC_GRAPH_TEXT_PIECES_H_
#define MGC_GRAPH_TEXT_PIECES_H_

#include <string>
#include <vector>

#include "graph/text/token_reader.h"
#include "graph/types/attrs.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// A mesh as a text declares it.
struct NamedMesh {
  std::string name = "m";
  Mesh mesh;
  // Axes that the text names and the mesh does not hold, since they are of size 1: shardings may
  // still name them.
  std::vector<std::string> unit_axes;
};

// `mesh @m [tp=4, dp=2; ep=dp*tp]`. Labels: text_c8 for what Mesh refuses.
bool ReadMesh(TokenReader* reader, NamedMesh* out);

// The name of an element type, where `expected` was. Label: text_c4 for an unknown one.
bool ReadElementType(TokenReader* reader, const char* expected, DType* out);

// `f32[batch=8,16,vocab=257%128]`. Labels: text_c4, type_c1.
bool ReadType(TokenReader* reader, TensorType* out);

// `@m[dp,tp.0*tp.1,-]+tp^cp/dp` of a value of type `type`. Axes may be products of atomic ones.
// Labels: text_c8 for an axis or a mesh that does not exist, sharding_c1 to c3.
bool ReadSharding(TokenReader* reader, const NamedMesh& mesh, const TensorType& type,
                  Sharding* out);

// `{p=0.1, spec="..."}`. Labels: text_c3 for a name given twice.
bool ReadAttrs(TokenReader* reader, Attrs* out);

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_PIECES_H_
