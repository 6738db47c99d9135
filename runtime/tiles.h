// Where the elements of one rank's tile lie in the whole, logical tensor.

#ifndef MGC_RUNTIME_TILES_H_
#define MGC_RUNTIME_TILES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "graph/mesh.h"
#include "graph/sharding.h"
#include "graph/tensor_type.h"

namespace mgc {

// Calls fn(begin in the tile, begin in the whole, count), all in elements, for every contiguous run
// of valid elements that `rank` holds. Storage axes count: a tile stored in pieces has only the
// runs of this rank's piece, counted from the piece's begin.
void ForEachRun(const TensorType& type, const Sharding& sharding, const Mesh& mesh, int64_t rank,
                absl::FunctionRef<void(int64_t tile, int64_t whole, int64_t count)> fn);

// True when `rank` is the first of the ranks that hold the same piece: coordinate 0 on every axis
// that the sharding does not use, those in `apart` left aside.
bool IsFirstReplica(const Sharding& sharding, AxisSet apart, const Mesh& mesh, int64_t rank);

}  // namespace mgc

#endif  // MGC_RUNTIME_TILES_H_
