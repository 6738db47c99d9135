#include "runtime/comm/line_flow.h"

#include <cstring>

namespace mgc {

LineFlow::LineFlow()
    : sum_(static_cast<size_t>(kMessageBytes)), rounded_(static_cast<size_t>(kMessageBytes)) {}

void LineFlow::Begin(const Share& share, Link& link) {
  share_ = &share;
  up_ = down_ = share.begin();
  const Route& route = share.route();
  if (!share.is_last()) {
    to_next_ = PieceWriter(&link.sender(route.to_next));
    from_next_ = PieceReader(&link.receiver(route.from_next));
  }
  if (!share.is_first()) {
    to_previous_ = PieceWriter(&link.sender(route.to_previous));
    from_previous_ = PieceReader(&link.receiver(route.from_previous));
  }
}

bool LineFlow::Advance() {
  bool moved = false;
  while (!share_->AtEnd(up_) && Up(share_->At(up_))) {
    moved = true;
    share_->StepOn(&up_);
    if (share_->AtEnd(up_) && !share_->is_last()) to_next_.Flush();
  }
  while (!share_->AtEnd(down_) && Down(share_->At(down_))) {
    moved = true;
    share_->StepOn(&down_);
    if (share_->AtEnd(down_) && !share_->is_first()) to_previous_.Flush();
  }
  return moved;
}

bool LineFlow::Up(const PlacedCell& at) {
  if (at.cell.count == 0) {
    DeliverHere(at, nullptr);
    return true;
  }
  return at.is_sum() ? SumUp(at) : GatherUp(at);
}

bool LineFlow::Down(const PlacedCell& at) {
  // The last process sends results down when it has them.
  if (share_->is_last() && !(down_ < up_)) return false;
  if (at.cell.count == 0) return true;
  return at.is_sum() ? SumDown(at) : GatherDown(at);
}

bool LineFlow::SumUp(const PlacedCell& at) {
  const char* before = nullptr;
  if (!share_->is_first()) {
    before = from_previous_.Peek();
    if (before == nullptr) return false;
  }
  if (share_->is_last()) {
    if (!FinishSum(at, before)) return false;
  } else {
    const int64_t bytes = BytesUp(at, share_->mine());
    char* const room = to_next_.Reserve(bytes);
    if (room == nullptr) return false;
    if (IsOneTerm(share_->mine())) {
      std::memcpy(room, at.InputOf(share_->members().first), static_cast<size_t>(bytes));
    } else {
      Add(at, before, room);
    }
    to_next_.Commit(bytes);
  }
  if (before != nullptr) from_previous_.Skip(BytesUp(at, share_->mine() - 1));
  return true;
}

// Whether what a process sends up is a term and no sum: half the bytes of elements of two bytes.
bool LineFlow::IsOneTerm(size_t stop) const {
  return stop == 0 && share_->MembersOf(stop).size() == 1;
}

int64_t LineFlow::BytesUp(const PlacedCell& at, size_t stop) const {
  return IsOneTerm(stop) ? at.narrow_bytes() : at.wide_bytes();
}

// The terms of the members here to what comes from the process before, if that is not null.
void LineFlow::Add(const PlacedCell& at, const char* before, char* sum) const {
  const Arithmetic& arithmetic = *at.cells.arithmetic();
  if (before != nullptr && IsOneTerm(share_->mine() - 1)) {
    arithmetic.add(nullptr, {&before, 1}, 0, at.cell.count, sum);
    before = sum;
  }
  arithmetic.add(before, at.Terms(share_->members()), at.cell.in, at.cell.count, sum);
}

// The last process makes the result, where it can in the message that takes it down the line.
bool LineFlow::FinishSum(const PlacedCell& at, const char* before) {
  const Arithmetic& arithmetic = *at.cells.arithmetic();
  char* room = nullptr;
  if (IsNeededBefore(at)) {
    room = to_previous_.Reserve(at.narrow_bytes());
    if (room == nullptr) return false;
  }
  char* const result = room != nullptr ? room : rounded_.data();
  char* const sum = arithmetic.round == nullptr ? result : sum_.data();
  Add(at, before, sum);
  if (arithmetic.round != nullptr) arithmetic.round(sum, at.cell.count, result);
  DeliverHere(at, result);
  if (room != nullptr) to_previous_.Commit(at.narrow_bytes());
  return true;
}

bool LineFlow::IsNeededBefore(const PlacedCell& at) const {
  return share_->StopOf(at.cell.to_begin) < share_->route().mine;
}

bool LineFlow::SumDown(const PlacedCell& at) {
  if (share_->is_last()) return true;
  if (share_->StopOf(at.cell.to_begin) > share_->route().mine) return true;
  return PassOn(at, nullptr, &from_next_, IsNeededBefore(at) ? &to_previous_ : nullptr);
}

bool LineFlow::GatherUp(const PlacedCell& at) {
  const int owner = share_->StopOf(at.cell.from_begin);
  if (owner > share_->route().mine) return true;
  const char* const own = owner == share_->route().mine ? at.InputOf(at.cell.from_begin) : nullptr;
  if (!PassOn(at, own, &from_previous_, share_->is_last() ? nullptr : &to_next_)) return false;
  if (own != nullptr) DeliverHere(at, own);
  return true;
}

bool LineFlow::GatherDown(const PlacedCell& at) {
  const int owner = share_->StopOf(at.cell.from_begin);
  if (owner < share_->route().mine) return true;
  const char* const own = owner == share_->route().mine ? at.InputOf(at.cell.from_begin) : nullptr;
  return PassOn(at, own, &from_next_, share_->is_first() ? nullptr : &to_previous_);
}

bool LineFlow::PassOn(const PlacedCell& at, const char* own, PieceReader* from, PieceWriter* to) {
  const char* const piece = own != nullptr ? own : from->Peek();
  if (piece == nullptr) return false;
  const int64_t bytes = at.narrow_bytes();
  if (to != nullptr) {
    char* const room = to->Reserve(bytes);
    if (room == nullptr) return false;
    std::memcpy(room, piece, static_cast<size_t>(bytes));
    to->Commit(bytes);
  }
  if (own != nullptr) return true;
  DeliverHere(at, piece);
  from->Skip(bytes);
  return true;
}

void LineFlow::DeliverHere(const PlacedCell& at, const char* from) {
  const MemberRange receivers = ReceiversAmong(at.cell, share_->members());
  const int64_t bytes = at.cells.element_bytes();
  if (from != nullptr) Deliver(at.tiled, at.cell, receivers, 0, at.cell.count, bytes, from);
  DeliverZeros(at.tiled, at.cell, receivers, bytes);
}

}  // namespace mgc
