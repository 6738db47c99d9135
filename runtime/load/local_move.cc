#include "runtime/load/local_move.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "runtime/load/exchange.h"

namespace mgc {
namespace {

// The rank whose places on the axes are all 0 keeps the value; others begin their part of the sum
// with zero.
LocalMove Lift(const Exchange& lift, const Mesh& mesh, int64_t rank) {
  bool keeps = true;
  for (AxisId axis : lift.axes) keeps = keeps && mesh.Coordinate(rank, axis) == 0;
  LocalMove move;
  move.rows = 1;
  move.from_stride = move.to_stride = lift.whole * SizeOf(lift.dtype);
  move.valid = keeps ? move.to_stride : 0;
  return move;
}

LocalMove Slice(const Exchange& slice, int64_t piece) {
  const int64_t size = SizeOf(slice.dtype) * slice.inner;
  LocalMove move;
  move.rows = slice.outer;
  move.from_begin = piece * slice.room * size;
  move.from_stride = slice.whole * size;
  move.to_stride = slice.room * size;
  move.valid = std::clamp<int64_t>(move.from_stride - move.from_begin, 0, move.to_stride);
  return move;
}

}  // namespace

absl::StatusOr<LocalMove> LocalMoveOf(const TensorType& type, const Sharding& from,
                                      const Sharding& to, absl::string_view op, const Mesh& mesh,
                                      int64_t rank) {
  MGC_ASSIGN_OR_RETURN(const Collective collective, CollectiveBetween(from, to, op));
  const Exchange exchange = ExchangeOf(collective, type, from, to, mesh);
  if (collective.kind == CollectiveKind::kLift) return Lift(exchange, mesh, rank);
  if (collective.kind == CollectiveKind::kSlice) {
    return Slice(exchange, mesh.ShardIndex(rank, collective.axes));
  }
  return absl::InvalidArgumentError(absl::StrCat(op, " is not local"));
}

}  // namespace mgc
