#include "runtime/comm/direct_flow.h"

#include <cstring>

namespace mgc {

DirectFlow::DirectFlow(size_t stops)
    : outgoing_(stops),
      readers_(stops),
      sum_(static_cast<size_t>(kMessageBytes)),
      rounded_(static_cast<size_t>(kMessageBytes)) {}

void DirectFlow::Begin(const Share& share, Link& link) {
  share_ = &share;
  received_ = share.begin();
  added_ = 0;
  for (size_t s = 0; s < share.route().stops.size(); ++s) {
    if (s == share.mine()) continue;
    outgoing_[s] = {received_, 0, PieceWriter(&link.sender(share.route().to[s]))};
    readers_[s] = PieceReader(&link.receiver(share.route().from[s]));
  }
}

bool DirectFlow::Advance() {
  bool moved = false;
  for (size_t s = 0; s < share_->route().stops.size(); ++s) {
    if (s != share_->mine()) moved = SendTo(s) || moved;
  }
  return Receive() || moved;
}

bool DirectFlow::done() const {
  if (!share_->AtEnd(received_)) return false;
  for (size_t s = 0; s < share_->route().stops.size(); ++s) {
    if (s != share_->mine() && !share_->AtEnd(outgoing_[s].place)) return false;
  }
  return true;
}

bool DirectFlow::SendTo(size_t stop) {
  Outgoing& out = outgoing_[stop];
  bool moved = false;
  while (!share_->AtEnd(out.place)) {
    const PlacedCell at = share_->At(out.place);
    const bool needed = !ReceiversAmong(at.cell, share_->MembersOf(stop)).empty();
    if (needed && at.cell.count > 0 && !SendCell(at, &out)) return moved;
    moved = true;
    out.members = 0;
    share_->StepOn(&out.place);
    if (share_->AtEnd(out.place)) out.writer.Flush();
  }
  return moved;
}

bool DirectFlow::SendCell(const PlacedCell& at, Outgoing* out) {
  const MemberRange sources = SourcesAmong(at.cell, share_->members());
  for (; out->members < sources.size(); ++out->members) {
    char* const room = out->writer.Reserve(at.narrow_bytes());
    if (room == nullptr) return false;
    std::memcpy(room, at.InputOf(sources.first + out->members),
                static_cast<size_t>(at.narrow_bytes()));
    out->writer.Commit(at.narrow_bytes());
  }
  return true;
}

bool DirectFlow::Receive() {
  bool moved = false;
  while (!share_->AtEnd(received_)) {
    const int64_t added = added_;
    if (!ReceiveCell(share_->At(received_))) return moved || added_ != added;
    moved = true;
    added_ = 0;
    share_->StepOn(&received_);
  }
  return moved;
}

bool DirectFlow::ReceiveCell(const PlacedCell& at) {
  const MemberRange receivers = ReceiversAmong(at.cell, share_->members());
  if (receivers.empty()) return true;
  if (at.cell.count > 0) {
    if (!(at.is_sum() ? AddTerms(at) : Copy(at, receivers))) return false;
    if (at.is_sum()) {
      // An all-reduce may write over its terms, which all others must have got before.
      if (!IsSentToAll(received_)) return false;
      const Arithmetic& arithmetic = *at.cells.arithmetic();
      if (arithmetic.round != nullptr)
        arithmetic.round(sum_.data(), at.cell.count, rounded_.data());
      Deliver(at.tiled, at.cell, receivers, 0, at.cell.count, arithmetic.narrow_bytes,
              arithmetic.round != nullptr ? rounded_.data() : sum_.data());
    }
  }
  DeliverZeros(at.tiled, at.cell, receivers, at.cells.element_bytes());
  return true;
}

bool DirectFlow::AddTerms(const PlacedCell& at) {
  const Arithmetic& arithmetic = *at.cells.arithmetic();
  while (at.cell.from_begin + added_ < at.cell.from_end) {
    const int64_t member = at.cell.from_begin + added_;
    const char* const before = added_ == 0 ? nullptr : sum_.data();
    const int stop = share_->StopOf(member);
    if (stop == share_->route().mine) {
      arithmetic.add(before, at.Terms(share_->members()), at.cell.in, at.cell.count, sum_.data());
      added_ += share_->members().size();
      continue;
    }
    PieceReader& reader = readers_[static_cast<size_t>(stop)];
    const char* const term = reader.Peek();
    if (term == nullptr) return false;
    arithmetic.add(before, {&term, 1}, 0, at.cell.count, sum_.data());
    reader.Skip(at.narrow_bytes());
    ++added_;
  }
  return true;
}

bool DirectFlow::Copy(const PlacedCell& at, const MemberRange& receivers) {
  const int stop = share_->StopOf(at.cell.from_begin);
  const bool own = stop == share_->route().mine;
  PieceReader& reader = readers_[static_cast<size_t>(stop)];
  const char* const from = own ? at.InputOf(at.cell.from_begin) : reader.Peek();
  if (from == nullptr) return false;
  Deliver(at.tiled, at.cell, receivers, 0, at.cell.count, at.cells.element_bytes(), from);
  if (!own) reader.Skip(at.narrow_bytes());
  return true;
}

bool DirectFlow::IsSentToAll(const CellPlace& place) const {
  for (size_t s = 0; s < share_->route().stops.size(); ++s) {
    if (s != share_->mine() && !(place < outgoing_[s].place)) return false;
  }
  return true;
}

}  // namespace mgc
