#include "runtime/comm/cells.h"

#include <algorithm>
#include <utility>

namespace mgc {
namespace {

bool IsReduction(CollectiveKind kind) {
  return IsAllReduce(kind) || kind == CollectiveKind::kReduceScatter;
}

}  // namespace

// Of an all-to-all a run goes along the dim that lies nearer to the end of the shape: its elements
// are neighbours in both tiles. It is the dim that becomes cut, or the one that becomes whole.
Cells::Cells(const Exchange& exchange)
    : x_(&exchange), members_(static_cast<int64_t>(exchange.piece.size())) {
  int64_t runs = 0;
  switch (x_->kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllReduceMax:
      runs = 1;
      run_ = x_->whole;
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllGather:
      runs = x_->outer * members_;
      run_ = x_->room * x_->inner;
      break;
    case CollectiveKind::kAllToAll:
      runs = x_->outer * members_ * members_ * x_->middle *
             (x_->second_is_minor ? x_->room : x_->second_room);
      run_ = (x_->second_is_minor ? x_->second_room : x_->room) * x_->inner;
      break;
    case CollectiveKind::kSlice:
    case CollectiveKind::kLift:
      return;
  }
  parts_ = (run_ + kCellElements - 1) / kCellElements;
  count_ = runs * parts_;
  elements_ = std::min(run_, kCellElements);
  arithmetic_ = ArithmeticOf(x_->dtype, x_->kind == CollectiveKind::kAllReduceMax);
  served_ = arithmetic_ != nullptr || !IsReduction(x_->kind);
  element_bytes_ = SizeOf(x_->dtype);
}

Cell Cells::At(int64_t index) const {
  if (x_->kind == CollectiveKind::kAllToAll) return RowAt(index);
  if (x_->kind == CollectiveKind::kReduceScatter || x_->kind == CollectiveKind::kAllGather) {
    return PieceAt(index);
  }
  Cell cell;
  cell.from_end = cell.to_end = members_;
  cell.in = cell.out = index * kCellElements;
  cell.count = std::min(kCellElements, x_->whole - cell.in);
  return cell;
}

// A part of a member's piece, which is cut from the whole that others hold.
Cell Cells::PieceAt(int64_t index) const {
  const int64_t at = index % parts_ * kCellElements;
  const int64_t member = index / parts_ % members_;
  const int64_t outer = index / parts_ / members_;
  const int64_t piece_begin = x_->piece[static_cast<size_t>(member)] * run_;
  const int64_t in_piece = outer * run_ + at;
  const int64_t in_whole = outer * x_->whole * x_->inner + piece_begin + at;
  const int64_t room = std::min(kCellElements, run_ - at);
  Cell cell;
  cell.count = std::clamp<int64_t>(x_->whole * x_->inner - piece_begin - at, 0, room);
  cell.from_end = cell.to_end = members_;
  if (x_->kind == CollectiveKind::kAllGather) {
    cell.from_begin = member;
    cell.from_end = member + 1;
    cell.in = in_piece;
    cell.out = in_whole;
  } else {
    cell.to_begin = member;
    cell.to_end = member + 1;
    cell.in = in_whole;
    cell.out = in_piece;
    cell.zeros = room - cell.count;
  }
  return cell;
}

// Elements [outer, i, middle, j, *] of a tile [outer, dim, middle, second, inner], the two dims in
// either order: `i` counts in the piece that `from` holds, `j` in the one that `to` receives.
Cell Cells::RowAt(int64_t index) const {
  const int64_t at = index % parts_ * kCellElements;
  int64_t rest = index / parts_;
  const auto take = [&rest](int64_t size) {
    const int64_t digit = rest % size;
    rest /= size;
    return digit;
  };
  const int64_t middle = take(x_->middle);
  const int64_t row = take(x_->second_is_minor ? x_->room : x_->second_room);
  Cell cell;
  cell.from_begin = take(members_);
  cell.to_begin = take(members_);
  cell.from_end = cell.from_begin + 1;
  cell.to_end = cell.to_begin + 1;
  const int64_t first = x_->piece[static_cast<size_t>(cell.from_begin)] * x_->room;
  const int64_t second = x_->piece[static_cast<size_t>(cell.to_begin)] * x_->second_room;
  const int64_t room = std::min(kCellElements, run_ - at);
  // How many of a run's elements behind `at` are real, where `size` of its dim are.
  const auto real = [&](int64_t size) {
    return std::clamp<int64_t>(std::clamp<int64_t>(size, 0, run_) * x_->inner - at, 0, room);
  };
  if (x_->second_is_minor) {
    if (first + row >= x_->whole) return cell;
    cell.in = ((rest * x_->room + row) * x_->middle + middle) * x_->second_whole + second;
    cell.out = ((rest * x_->whole + first + row) * x_->middle + middle) * x_->second_room;
    cell.count = real(x_->second_whole - second);
    cell.zeros = room - cell.count;
  } else {
    cell.in = ((rest * x_->second_whole + second + row) * x_->middle + middle) * x_->room;
    cell.out = ((rest * x_->second_room + row) * x_->middle + middle) * x_->whole + first;
    cell.count = real(x_->whole - first);
    if (second + row >= x_->second_whole) std::swap(cell.count, cell.zeros);
  }
  cell.in = cell.in * x_->inner + at;
  cell.out = cell.out * x_->inner + at;
  return cell;
}

}  // namespace mgc
