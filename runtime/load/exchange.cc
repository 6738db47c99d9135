#include "runtime/load/exchange.h"

#include <algorithm>

#include "absl/types/span.h"

namespace mgc {
namespace {

Sharding Without(Sharding sharding, AxisSet axes) {
  for (AxisList& list : sharding.dims) {
    for (AxisId axis : axes) list.Remove(axis);
  }
  for (AxisId axis : axes) sharding.storage.Remove(axis);
  return sharding;
}

int64_t Product(absl::Span<const int64_t> sizes, int begin, int end) {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= sizes[i];
  return product;
}

// Pieces held by the members of a group, in its order.
std::vector<int> Pieces(const AxisList& axes, const Mesh& mesh) {
  std::vector<int> pieces;
  for (int64_t rank : mesh.Group(0, axes.AsSet())) {
    pieces.push_back(static_cast<int>(mesh.ShardIndex(rank, axes)));
  }
  return pieces;
}

// Describes the dim (or the flat tile) that is cut in `cut` and whole over the axes in `whole`.
void FillDim(const TensorType& type, const Sharding& cut, const Sharding& whole, int dim,
             const Mesh& mesh, Exchange* out) {
  const std::vector<int64_t> pieces = LocalShape(type, cut, mesh);
  const std::vector<int64_t> wholes = LocalShape(type, whole, mesh);
  if (dim < 0) {
    out->whole = NumElements(wholes);
    out->room = NumElements(pieces);
    return;
  }
  const int ndim = static_cast<int>(pieces.size());
  out->outer = Product(pieces, 0, dim);
  out->whole = wholes[dim];
  out->room = pieces[dim];
  out->inner = Product(pieces, dim + 1, ndim);
}

// Describes an all-to-all from dim `from_dim` (cut, becomes whole) to `to_dim` (whole, becomes
// cut).
void FillTwoDims(const TensorType& type, const Sharding& from, const Sharding& to,
                 const Collective& collective, const Mesh& mesh, Exchange* out) {
  const std::vector<int64_t> a = LocalShape(type, from, mesh);
  const std::vector<int64_t> b = LocalShape(type, to, mesh);
  const int first = std::min(collective.dim, collective.to_dim);
  const int second = std::max(collective.dim, collective.to_dim);
  out->outer = Product(a, 0, first);
  out->middle = Product(a, first + 1, second);
  out->inner = Product(a, second + 1, static_cast<int>(a.size()));
  out->second_is_minor = collective.to_dim == second;
  out->whole = b[collective.dim];
  out->room = a[collective.dim];
  out->second_whole = a[collective.to_dim];
  out->second_room = b[collective.to_dim];
}

}  // namespace

bool operator==(const Exchange& a, const Exchange& b) {
  return a.kind == b.kind && a.axes == b.axes && a.dtype == b.dtype && a.outer == b.outer &&
         a.whole == b.whole && a.room == b.room && a.inner == b.inner &&
         a.second_is_minor == b.second_is_minor && a.middle == b.middle &&
         a.second_whole == b.second_whole && a.second_room == b.second_room && a.piece == b.piece;
}

Exchange ExchangeOf(const Collective& collective, const TensorType& type, const Sharding& from,
                    const Sharding& to, const Mesh& mesh) {
  Exchange exchange;
  exchange.dtype = type.dtype;
  exchange.whole = LocalElements(type, from, mesh);
  exchange.room = exchange.whole;
  exchange.kind = collective.kind;
  exchange.axes = collective.axes.AsSet();
  exchange.piece = Pieces(collective.axes, mesh);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
    case CollectiveKind::kLift:
      break;
    case CollectiveKind::kAllGather:
      FillDim(type, from, Without(from, exchange.axes), collective.dim, mesh, &exchange);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kSlice:
      FillDim(type, to, Without(to, exchange.axes), collective.dim, mesh, &exchange);
      break;
    case CollectiveKind::kAllToAll:
      FillTwoDims(type, from, to, collective, mesh, &exchange);
      break;
  }
  return exchange;
}

}  // namespace mgc
