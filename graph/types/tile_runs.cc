#include "graph/types/tile_runs.h"

#include <algorithm>

namespace mgc {

void ForEachRun(absl::Span<const DimPiece> pieces, absl::Span<const int64_t> whole,
                RunFunction fn) {
  const size_t ndim = pieces.size();
  for (const DimPiece& piece : pieces) {
    if (piece.valid == 0) return;
  }
  // Dims from `split` on lie whole and unpadded in both: one run covers them.
  size_t split = ndim;
  int64_t run = 1;
  while (split > 0 && pieces[split - 1].room == whole[split - 1]) run *= whole[--split];
  if (split > 0) run *= pieces[--split].valid;
  std::vector<int64_t> at(split, 0);
  while (true) {
    int64_t in_tile = 0;
    int64_t in_whole = 0;
    for (size_t d = 0; d < ndim; ++d) {
      const int64_t index = d < split ? at[d] : 0;
      in_tile = in_tile * pieces[d].room + index;
      in_whole = in_whole * whole[d] + pieces[d].begin + index;
    }
    fn(in_tile, in_whole, run);
    size_t d = split;
    while (d > 0 && ++at[d - 1] == pieces[d - 1].valid) at[--d] = 0;
    if (d == 0) return;
  }
}

void ForEachRun(const TensorType& type, const Sharding& sharding, const Mesh& mesh, int64_t rank,
                RunFunction fn) {
  std::vector<DimPiece> pieces;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    pieces.push_back(PieceOf(type.dims[d], sharding.dims[d], mesh, rank));
  }
  if (sharding.storage.empty()) return ForEachRun(pieces, SizesOf(type), fn);
  const int64_t room = LocalElements(type, sharding, mesh);
  const int64_t begin = mesh.ShardIndex(rank, sharding.storage) * room;
  ForEachRun(pieces, SizesOf(type), [&](int64_t tile, int64_t whole, int64_t count) {
    const int64_t first = std::max(tile, begin);
    const int64_t last = std::min(tile + count, begin + room);
    if (first < last) fn(first - begin, whole + first - tile, last - first);
  });
}

bool IsFirstReplica(const Sharding& sharding, AxisSet apart, const Mesh& mesh, int64_t rank) {
  for (AxisId axis : mesh.AllAxes() - sharding.UsedAxes() - apart) {
    if (mesh.Coordinate(rank, axis) != 0) return false;
  }
  return true;
}

}  // namespace mgc
