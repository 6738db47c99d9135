// Sees that a run does not come on, and why; sees that a rank is slow.
//
// It watches progress, not life (Waits::FindCulprit). It decides nothing and has no clock of its
// own.

#ifndef MGC_RUNTIME_WATCH_WATCHDOG_H_
#define MGC_RUNTIME_WATCH_WATCHDOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "runtime/watch/board.h"
#include "runtime/watch/waits.h"

namespace mgc {

class Watchdog {
 public:
  // `floor_ns`: the least time that counts as standing still. Both must outlive it.
  Watchdog(const Waits& waits, const Board& board, int64_t floor_ns)
      : waits_(waits), board_(board), floor_ns_(floor_ns) {}

  // What keeps the run from going on, where it does not: a sentence that names the culprit, and the
  // state of all ranks on the lines behind it.
  absl::optional<std::string> Look(int64_t now_ns) const;
  // Of a rank that takes several times as long as it used to take, two steps in a row, where most
  // others do not: a sentence. Each rank is told of once.
  absl::optional<std::string> FindSlow();

 private:
  struct Usual {
    int64_t step = 0;        // the last one seen
    int64_t busy_ns = 0;     // the least of a step
    int64_t slow_steps = 0;  // in a row
    bool told = false;
  };
  double TimesUsualOfMost() const;

  const Waits& waits_;
  const Board& board_;
  const int64_t floor_ns_;
  std::vector<Usual> usual_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WATCH_WATCHDOG_H_
