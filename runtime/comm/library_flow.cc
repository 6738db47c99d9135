#include "runtime/comm/library_flow.h"

namespace mgc {

LibraryFlow::LibraryFlow(AllReduceLibrary* library)
    : library_(library), rounded_(library == nullptr ? 0 : static_cast<size_t>(kMessageBytes)) {}

bool LibraryFlow::Serves(const Share& share) { return IsAllReduce(share.kind()); }

void LibraryFlow::Begin(const Share& share, Link& /*link*/) {
  share_ = &share;
  group_ = &library_->group(share.route().library_group);
  started_ = taken_ = share.begin();
}

bool LibraryFlow::Advance() {
  bool moved = false;
  for (bool more = true; more; moved = moved || more) {
    more = StartPiece();
    more = TakePiece() || more;
  }
  return moved;
}

LibraryFlow::Piece LibraryFlow::PieceAt(const CellPlace& begin) const {
  Piece piece;
  piece.dtype = share_->At(begin).tiled.exchange->dtype;
  int64_t bytes = 0;
  for (piece.end = begin; !share_->AtEnd(piece.end); share_->StepOn(&piece.end)) {
    const PlacedCell at = share_->At(piece.end);
    bytes += at.wide_bytes();
    if (at.tiled.exchange->dtype != piece.dtype || bytes > kLibraryPieceBytes) break;
    piece.count += at.cell.count;
  }
  return piece;
}

bool LibraryFlow::StartPiece() {
  if (share_->AtEnd(started_)) return false;
  char* to = group_->Room();
  if (to == nullptr) return false;
  const Piece piece = PieceAt(started_);
  for (; started_ < piece.end; share_->StepOn(&started_)) {
    const PlacedCell at = share_->At(started_);
    at.cells.arithmetic()->add(nullptr, at.Terms(share_->members()), at.cell.in, at.cell.count, to);
    to += at.wide_bytes();
  }
  group_->Start(piece.dtype, share_->kind() == CollectiveKind::kAllReduceMax, piece.count);
  return true;
}

bool LibraryFlow::TakePiece() {
  if (!(taken_ < started_)) return false;
  const char* from = group_->Result();
  if (from == nullptr) return false;
  const Piece piece = PieceAt(taken_);
  for (; taken_ < piece.end; share_->StepOn(&taken_)) {
    const PlacedCell at = share_->At(taken_);
    const Arithmetic& arithmetic = *at.cells.arithmetic();
    if (arithmetic.round != nullptr) arithmetic.round(from, at.cell.count, rounded_.data());
    Deliver(at.tiled, at.cell, share_->members(), 0, at.cell.count, arithmetic.narrow_bytes,
            arithmetic.round != nullptr ? rounded_.data() : from);
    from += at.wide_bytes();
  }
  group_->Release();
  return true;
}

}  // namespace mgc
