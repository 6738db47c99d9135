#include "graph/types/even_cut.h"

#include "graph/types/sharding.h"

namespace mgc {

bool CutsEvenly(const Dim& dim, const AxisList& axes, const Mesh& mesh) {
  const int64_t pieces = mesh.Size(axes);
  return dim.size % pieces == 0 && LocalSize(dim, axes, mesh) == dim.size / pieces;
}

bool PiecesNest(const Dim& dim, const AxisList& a, const AxisList& b, const Mesh& mesh) {
  if (a == b || a.empty() || b.empty()) return true;
  return CutsEvenly(dim, a.size() > b.size() ? a : b, mesh);
}

}  // namespace mgc
