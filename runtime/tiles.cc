#include "runtime/tiles.h"

#include <algorithm>
#include <vector>

namespace mgc {
namespace {

// Cuts a run of the flat tile to the piece [begin, begin + room) and hands it on, if any is left.
void EmitWithin(int64_t begin, int64_t room, int64_t tile, int64_t whole, int64_t count,
                absl::FunctionRef<void(int64_t, int64_t, int64_t)> fn) {
  const int64_t first = std::max(tile, begin);
  const int64_t last = std::min(tile + count, begin + room);
  if (first < last) fn(first - begin, whole + first - tile, last - first);
}

}  // namespace

void ForEachRun(const TensorType& type, const Sharding& sharding, const Mesh& mesh, int64_t rank,
                absl::FunctionRef<void(int64_t tile, int64_t whole, int64_t count)> fn) {
  const int ndim = type.ndim();
  std::vector<DimPiece> pieces;
  int64_t room = 1;
  for (int d = 0; d < ndim; ++d) {
    pieces.push_back(PieceOf(type.dims[d], sharding.dims[d], mesh, rank));
    if (pieces.back().valid == 0) return;
    room *= pieces.back().room;
  }
  int64_t begin = 0;
  if (!sharding.storage.empty()) {
    room = LocalElements(type, sharding, mesh);
    begin = mesh.ShardIndex(rank, sharding.storage) * room;
  }
  // Dims from `split` on lie whole and unpadded in both: one run covers them.
  int split = ndim;
  int64_t run = 1;
  while (split > 0 && pieces[split - 1].room == type.dims[split - 1].size) {
    run *= type.dims[--split].size;
  }
  if (split > 0) run *= pieces[--split].valid;
  std::vector<int64_t> at(static_cast<size_t>(split), 0);
  while (true) {
    int64_t tile = 0;
    int64_t whole = 0;
    for (int d = 0; d < ndim; ++d) {
      const int64_t index = d < split ? at[d] : 0;
      tile = tile * pieces[d].room + index;
      whole = whole * type.dims[d].size + pieces[d].begin + index;
    }
    EmitWithin(begin, room, tile, whole, run, fn);
    int d = split;
    while (d > 0 && ++at[d - 1] == pieces[d - 1].valid) at[--d] = 0;
    if (d == 0) return;
  }
}

bool IsFirstReplica(const Sharding& sharding, AxisSet apart, const Mesh& mesh, int64_t rank) {
  for (AxisId axis : mesh.AllAxes() - sharding.UsedAxes() - apart) {
    if (mesh.Coordinate(rank, axis) != 0) return false;
  }
  return true;
}

}  // namespace mgc
