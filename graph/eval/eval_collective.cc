#include "graph/eval/eval_collective.h"

#include <algorithm>

namespace mgc {
namespace {

Sharding Without(Sharding sharding, AxisSet axes) {
  for (AxisList& list : sharding.dims) {
    for (AxisId axis : axes) list.Remove(axis);
  }
  for (AxisId axis : axes) sharding.storage.Remove(axis);
  sharding.sum -= axes;
  sharding.max -= axes;
  return sharding;
}

}  // namespace

std::vector<int64_t> CollectiveUse::GroupShape() const {
  std::vector<int64_t> shape = LocalShape(type, Without(from, collective.axes.AsSet()), mesh);
  if (flat()) shape = {NumElements(shape)};
  return shape;
}

std::vector<int64_t> CollectiveUse::Members(int64_t rank) const {
  if (!collective.MovesData()) return {rank};
  return mesh.Group(rank, collective.axes.AsSet());
}

bool CollectiveUse::Keeps(int64_t rank) const {
  if (collective.kind != CollectiveKind::kLift) return true;
  return std::all_of(collective.axes.begin(), collective.axes.end(),
                     [&](AxisId axis) { return mesh.Coordinate(rank, axis) == 0; });
}

std::vector<DimPiece> CollectiveUse::PiecesInGroup(const Sharding& sharding, int64_t rank) const {
  const std::vector<int64_t> whole = GroupShape();
  std::vector<int64_t> room = LocalShape(type, sharding, mesh);
  std::vector<DimPiece> pieces;
  if (flat()) room = {NumElements(room)};
  for (size_t i = 0; i < room.size(); ++i) {
    AxisList moved;
    for (AxisId axis : flat() ? sharding.storage : sharding.dims[i]) {
      if (collective.axes.Contains(axis)) moved.push_back(axis);
    }
    const int64_t begin = moved.empty() ? 0 : mesh.ShardIndex(rank, moved) * room[i];
    pieces.push_back({begin, std::clamp<int64_t>(whole[i] - begin, 0, room[i]), room[i]});
  }
  return pieces;
}

}  // namespace mgc
