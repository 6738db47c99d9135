// Dims in equal pieces and in unequal ones. Ranks make room for as much, rounded up
// (graph/types/sharding.h); of an uneven cut the last pieces are short or empty, and what a rank
// has room for beyond its piece is zero. Any dim may be cut so; whether one is, a strategy says.

#ifndef MGC_GRAPH_TYPES_EVEN_CUT_H_
#define MGC_GRAPH_TYPES_EVEN_CUT_H_

#include "graph/types/axis.h"
#include "graph/types/mesh.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Whether every piece is full: no rank makes room for more of the dim than it holds.
bool CutsEvenly(const Dim& dim, const AxisList& axes, const Mesh& mesh);

// Whether one collective can lead from the pieces of a dim over `a` to those over `b`, one of which
// begins with the other. Pieces of pieces must be full: those of an uneven cut do not end where the
// pieces do that they were to be parts of, so that such a dim is gathered whole, or cut from whole.
bool PiecesNest(const Dim& dim, const AxisList& a, const AxisList& b, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_EVEN_CUT_H_
