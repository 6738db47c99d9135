#include "runtime/comm/pair_flow.h"

#include <array>
#include <cstring>

namespace mgc {

PairFlow::PairFlow()
    : sum_(static_cast<size_t>(kMessageBytes)), rounded_(static_cast<size_t>(kMessageBytes)) {}

bool PairFlow::Serves(const Share& share) {
  const bool sums =
      share.kind() == CollectiveKind::kAllReduce || share.kind() == CollectiveKind::kAllReduceMax;
  const std::vector<Stop>& stops = share.route().stops;
  return sums && stops.size() == 2 && stops.back().last == 2;
}

void PairFlow::Begin(const Share& share, Link& link) {
  share_ = &share;
  const Route& route = share.route();
  const auto other = static_cast<size_t>(waits_for());
  const bool is_first = share.is_first();
  terms_to_ = PieceWriter(&link.sender(route.to[other]));
  terms_from_ = PieceReader(&link.receiver(route.from[other]));
  sums_to_ = PieceWriter(&link.sender(is_first ? route.to_next : route.to_previous));
  sums_from_ = PieceReader(&link.receiver(is_first ? route.from_next : route.from_previous));
  // The first cell is the first process's.
  CellPlace second = share.begin();
  if (!share.AtEnd(second)) share.StepOn(&second);
  summed_ = is_first ? share.begin() : second;
  sent_ = received_ = is_first ? second : share.begin();
}

void PairFlow::StepOn(CellPlace* place) const {
  share_->StepOn(place);
  if (!share_->AtEnd(*place)) share_->StepOn(place);
}

bool PairFlow::Advance() {
  bool moved = false;
  for (bool more = true; more; moved = moved || more) {
    more = SendTerm();
    more = Sum() || more;
    more = ReceiveSum() || more;
  }
  return moved;
}

bool PairFlow::SendTerm() {
  if (share_->AtEnd(sent_)) return false;
  const PlacedCell at = share_->At(sent_);
  const int64_t bytes = at.narrow_bytes();
  char* const room = terms_to_.Reserve(bytes);
  if (room == nullptr) return false;
  std::memcpy(room, at.InputOf(share_->members().first), static_cast<size_t>(bytes));
  terms_to_.Commit(bytes);
  StepOn(&sent_);
  if (share_->AtEnd(sent_)) terms_to_.Flush();
  return true;
}

bool PairFlow::Sum() {
  if (share_->AtEnd(summed_)) return false;
  const PlacedCell at = share_->At(summed_);
  const int64_t bytes = at.narrow_bytes();
  const char* const term = terms_from_.Peek();
  if (term == nullptr) return false;
  char* const room = sums_to_.Reserve(bytes);
  if (room == nullptr) return false;
  const Arithmetic& arithmetic = *at.cells.arithmetic();
  const char* const own = at.InputOf(share_->members().first);
  const bool is_first = share_->is_first();
  const std::array<const char*, 2> terms = {is_first ? own : term, is_first ? term : own};
  // Not into the room: the other process has its lines, and a copy of whole lines takes them away
  // without fetching them, which single stores do not.
  arithmetic.add(nullptr, terms, 0, at.cell.count, sum_.data());
  const char* result = sum_.data();
  if (arithmetic.round != nullptr) {
    arithmetic.round(sum_.data(), at.cell.count, rounded_.data());
    result = rounded_.data();
  }
  std::memcpy(room, result, static_cast<size_t>(bytes));
  DeliverHere(at, result);
  sums_to_.Commit(bytes);
  terms_from_.Skip(bytes);
  StepOn(&summed_);
  if (share_->AtEnd(summed_)) sums_to_.Flush();
  return true;
}

bool PairFlow::ReceiveSum() {
  if (share_->AtEnd(received_)) return false;
  const char* const sum = sums_from_.Peek();
  if (sum == nullptr) return false;
  const PlacedCell at = share_->At(received_);
  DeliverHere(at, sum);
  sums_from_.Skip(at.narrow_bytes());
  StepOn(&received_);
  return true;
}

void PairFlow::DeliverHere(const PlacedCell& at, const char* from) const {
  Deliver(at.tiled, at.cell, share_->members(), 0, at.cell.count, at.cells.element_bytes(), from);
}

}  // namespace mgc
