#include "runtime/comm/share.h"

namespace mgc {

void Share::Begin(absl::Span<const TiledExchange> exchanges, const Route& route) {
  route_ = &route;
  exchanges_.assign(exchanges.begin(), exchanges.end());
  cells_.clear();
  bytes_ = 0;
  for (const TiledExchange& tiled : exchanges_) {
    cells_.emplace_back(*tiled.exchange);
    bytes_ += cells_.back().count() * cells_.back().elements() * cells_.back().element_bytes();
  }
}

int64_t Share::num_cells() const {
  int64_t count = 0;
  for (const Cells& cells : cells_) count += cells.count();
  return count;
}

CellPlace Share::PlaceOf(int64_t cell) const {
  CellPlace place;
  while (!AtEnd(place) && cell >= cells_[place.part].count()) {
    cell -= cells_[place.part].count();
    ++place.part;
  }
  place.cell = AtEnd(place) ? 0 : cell;
  return place;
}

void Share::StepOn(CellPlace* place) const {
  ++place->cell;
  SkipEmpty(place);
}

// Goes on to the next exchange that has cells left.
void Share::SkipEmpty(CellPlace* place) const {
  while (!AtEnd(*place) && place->cell == cells_[place->part].count()) {
    ++place->part;
    place->cell = 0;
  }
}

}  // namespace mgc
