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

#include <cstdint>

#include "runtime/comm/arithmetic.h"
#include "runtime/load/exchange.h"

namespace mgc {

// Of sums, or of maxima.
inline bool IsAllReduce(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllReduceMax;
}

// Elements of a cell at most. Of the widest type they fill 64 KiB.
inline constexpr int64_t kCellElements = 8192;

// Members by position in the group; places in elements.
struct Cell {
  int64_t from_begin = 0, from_end = 0;
  int64_t to_begin = 0, to_end = 0;
  int64_t in = 0;     // where it begins in the tile of each member it comes from
  int64_t out = 0;    // and of each it goes to
  int64_t count = 0;  // elements; 0 where a piece lies outside of the whole
  int64_t zeros = 0;  // elements behind them in the tiles it goes to, which become zero
};

// The cells of one exchange. `exchange` must outlive it.
class Cells {
 public:
  explicit Cells(const Exchange& exchange);

  int64_t count() const { return count_; }
  // Elements of a cell at most.
  int64_t elements() const { return elements_; }
  Cell At(int64_t index) const;
  // How terms are added, for kinds that have several; null for a type that nothing adds.
  const Arithmetic* arithmetic() const { return arithmetic_; }
  // Whether the kind and the type are served: those that are a rank's own affair are not.
  bool served() const { return served_; }
  int64_t element_bytes() const { return element_bytes_; }

 private:
  Cell PieceAt(int64_t index) const;
  Cell RowAt(int64_t index) const;

  const Exchange* x_;
  int64_t members_;
  int64_t run_ = 0;    // elements of a run before it is cut
  int64_t parts_ = 1;  // cells of a run
  int64_t count_ = 0;
  int64_t elements_ = 0;
  int64_t element_bytes_ = 0;
  const Arithmetic* arithmetic_ = nullptr;
  bool served_ = false;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_CELLS_H_
