// Where the elements of one rank's tile lie in the whole, logical tensor.

#ifndef MGC_GRAPH_TYPES_TILE_RUNS_H_
#define MGC_GRAPH_TYPES_TILE_RUNS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Takes `count` consecutive elements, which begin at the linear indices `tile` of the tile and
// `whole` of the whole tensor. count > 0.
using RunFunction = absl::FunctionRef<void(int64_t tile, int64_t whole, int64_t count)>;

// Calls fn for every contiguous run of valid elements of a tile, ascending. `pieces` are those of
// its dims, `whole` the tensor's sizes.
void ForEachRun(absl::Span<const DimPiece> pieces, absl::Span<const int64_t> whole, RunFunction fn);

// The same for the tile that `rank` holds of a value. Storage axes count: a tile stored in pieces
// has only the runs of this rank's piece, counted from the piece's begin.
void ForEachRun(const TensorType& type, const Sharding& sharding, const Mesh& mesh, int64_t rank,
                RunFunction fn);

// True when `rank` is the first of the ranks that hold the same piece: coordinate 0 on every axis
// that the sharding does not use, those in `apart` left aside.
bool IsFirstReplica(const Sharding& sharding, AxisSet apart, const Mesh& mesh, int64_t rank);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_TILE_RUNS_H_
