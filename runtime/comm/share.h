// What the members in this process bring to a collective whose other members are elsewhere: their
// tiles, and the cells in their order, which is the same in all processes.

#ifndef MGC_RUNTIME_COMM_SHARE_H_
#define MGC_RUNTIME_COMM_SHARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/comm/cells.h"
#include "runtime/comm/link.h"
#include "runtime/comm/routes.h"
#include "runtime/comm/tiles.h"

namespace mgc {

static_assert(kCellElements * 8 <= kMessageBytes, "a cell of the widest type fits in a message");

// A place among the cells of a collective's exchanges.
struct CellPlace {
  size_t part = 0;
  int64_t cell = 0;

  friend bool operator<(const CellPlace& a, const CellPlace& b) {
    return a.part < b.part || (a.part == b.part && a.cell < b.cell);
  }
};

// A cell with the exchange that it is of.
struct PlacedCell {
  const TiledExchange& tiled;
  const Cells& cells;
  Cell cell;

  int64_t narrow_bytes() const { return cell.count * cells.element_bytes(); }
  int64_t wide_bytes() const { return cell.count * cells.arithmetic()->wide_bytes; }
  bool is_sum() const { return cell.from_end - cell.from_begin > 1; }
  // Where a member's elements begin.
  const char* InputOf(int64_t member) const {
    return tiled.inputs[static_cast<size_t>(member)] + cell.in * cells.element_bytes();
  }
  // The tiles of members that lie here, as terms to be added from element `cell.in` on.
  absl::Span<const char* const> Terms(const MemberRange& members) const {
    return tiled.inputs.subspan(static_cast<size_t>(members.first),
                                static_cast<size_t>(members.size()));
  }
};

class Share {
 public:
  // Room for collectives of up to `parts` exchanges.
  explicit Share(size_t parts) {
    exchanges_.reserve(parts);
    cells_.reserve(parts);
  }

  // All exchanges are of one kind, and served (CheckServed). What the spans point to must outlive
  // the share's use. Allocates nothing.
  void Begin(absl::Span<const TiledExchange> exchanges, const Route& route);

  const Route& route() const { return *route_; }
  size_t mine() const { return static_cast<size_t>(route_->mine); }
  bool is_first() const { return route_->mine == 0; }
  bool is_last() const { return mine() + 1 == route_->stops.size(); }
  // The members here.
  MemberRange members() const { return MembersOf(mine()); }
  MemberRange MembersOf(size_t stop) const {
    return {route_->stops[stop].first, route_->stops[stop].last};
  }
  int StopOf(int64_t member) const { return route_->stop_of[static_cast<size_t>(member)]; }

  absl::Span<const TiledExchange> exchanges() const { return exchanges_; }
  // Cells in all.
  int64_t num_cells() const;
  CellPlace begin() const { return PlaceOf(0); }
  // Of the cell behind so many; the end behind all.
  CellPlace PlaceOf(int64_t cell) const;
  bool AtEnd(const CellPlace& place) const { return place.part == cells_.size(); }
  void StepOn(CellPlace* place) const;
  PlacedCell At(const CellPlace& place) const {
    return {exchanges_[place.part], cells_[place.part], cells_[place.part].At(place.cell)};
  }
  // Bytes of all members' elements that have a place in the result.
  int64_t bytes() const { return bytes_; }
  CollectiveKind kind() const { return exchanges_[0].exchange->kind; }

 private:
  void SkipEmpty(CellPlace* place) const;

  std::vector<TiledExchange> exchanges_;
  std::vector<Cells> cells_;
  const Route* route_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_SHARE_H_
