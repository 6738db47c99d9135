#include "runtime/comm/cells.h"

namespace mgc {
namespace {

bool IsReduction(CollectiveKind kind) {
  return IsAllReduce(kind) || kind == CollectiveKind::kReduceScatter;
}

CellPattern PatternOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      return CellPattern::kReduce;
    case CollectiveKind::kReduceScatter:
      return CellPattern::kScatter;
    case CollectiveKind::kAllGather:
      return CellPattern::kGather;
    case CollectiveKind::kAllToAll:
      return CellPattern::kAllToAll;
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      break;
  }
  return CellPattern::kNone;
}

}  // namespace

// Of an all-to-all a run goes along the dim that lies nearer to the end of the shape: its elements
// are neighbours in both tiles. It is the dim that becomes cut, or the one that becomes whole.
CellGeometry GeometryOf(const Exchange& x, int64_t cell) {
  CellGeometry g;
  g.whole = x.whole;
  g.room = x.room;
  g.inner = x.inner;
  g.middle = x.middle;
  g.second_whole = x.second_whole;
  g.second_room = x.second_room;
  g.cell = cell;
  g.members = static_cast<int32_t>(x.piece.size());
  g.pattern = PatternOf(x.kind);
  g.second_is_minor = x.second_is_minor;
  int64_t runs = 0;
  switch (g.pattern) {
    case CellPattern::kNone:
      return g;
    case CellPattern::kReduce:
      runs = 1;
      g.run = g.whole;
      break;
    case CellPattern::kScatter:
    case CellPattern::kGather:
      runs = x.outer * g.members;
      g.run = g.room * g.inner;
      break;
    case CellPattern::kAllToAll:
      runs =
          x.outer * g.members * g.members * g.middle * (g.second_is_minor ? g.room : g.second_room);
      g.run = (g.second_is_minor ? g.second_room : g.room) * g.inner;
      break;
  }
  g.Cut(runs);
  return g;
}

Cells::Cells(const Exchange& exchange) : x_(&exchange), geometry_(GeometryOf(exchange)) {
  if (geometry_.pattern == CellPattern::kNone) return;
  arithmetic_ = ArithmeticOf(x_->dtype, x_->kind == CollectiveKind::kAllReduceMax);
  served_ = arithmetic_ != nullptr || !IsReduction(x_->kind);
  element_bytes_ = SizeOf(x_->dtype);
}

}  // namespace mgc
