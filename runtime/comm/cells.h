// How the work of a collective is cut: into cells, each a run of elements that lie one after the
// other in every tile concerned.
//
// A cell takes terms from some members, in ascending order, and its result goes to some members:
//
//   all-reduce       from all       to all
//   reduce-scatter   from all       to the one whose piece it is
//   all-gather       from the one whose piece it is       to all
//   all-to-all       from one       to one
//
// Cells are the unit in which workers share a collective and in which it crosses processes; that
// sums come out equal either way follows from the order of terms in a cell.

#ifndef MGC_RUNTIME_COMM_CELLS_H_
#define MGC_RUNTIME_COMM_CELLS_H_

#include <algorithm>
#include <cstdint>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/cell_geometry.h"
#include "runtime/load/exchange.h"

namespace mgc {

// Of sums, or of maxima.
inline bool IsAllReduce(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllReduceMax;
}

// Elements of a cell at most. Of the widest type they fill 64 KiB.
inline constexpr int64_t kCellElements = 8192;

// The cells of an exchange, each of at most `cell` elements.
CellGeometry GeometryOf(const Exchange& exchange, int64_t cell = kCellElements);

// The cells of one exchange. `exchange` must outlive it.
class Cells {
 public:
  explicit Cells(const Exchange& exchange);

  int64_t count() const { return geometry_.count; }
  // Elements of a cell at most.
  int64_t elements() const { return std::min(geometry_.run, geometry_.cell); }
  Cell At(int64_t index) const { return geometry_.At(index, x_->piece.data()); }
  // How terms are added, for kinds that have several; null for a type that nothing adds.
  const Arithmetic* arithmetic() const { return arithmetic_; }
  // Whether the kind and the type are served: those that are a rank's own affair are not.
  bool served() const { return served_; }
  int64_t element_bytes() const { return element_bytes_; }

 private:
  const Exchange* x_;
  CellGeometry geometry_;
  int64_t element_bytes_ = 0;
  const Arithmetic* arithmetic_ = nullptr;
  bool served_ = false;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_CELLS_H_
