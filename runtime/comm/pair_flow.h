// A large sum between two processes with one member each, of which both do half.
//
// Cells belong to the two in turns. Each sends its terms of the other's cells there, adds up its
// own as soon as the other's terms have come, in ascending order of members whichever it is, and
// sends the sums back. As many bytes cross as along a line, but nobody adds while the other waits.
// Terms and sums have channels of their own, so that neither has to wait for the other.

#ifndef MGC_RUNTIME_COMM_PAIR_FLOW_H_
#define MGC_RUNTIME_COMM_PAIR_FLOW_H_

#include <cstdint>
#include <vector>

#include "runtime/comm/link.h"
#include "runtime/comm/share.h"
#include "runtime/comm/stream.h"

namespace mgc {

class PairFlow {
 public:
  PairFlow();

  // Whether a collective can go this way.
  static bool Serves(const Share& share);

  // `share` must outlive the flow's end.
  void Begin(const Share& share, Link& link);
  // Does what can be done now; whether that was anything. One thread at a time.
  bool Advance();
  bool done() const {
    return share_->AtEnd(sent_) && share_->AtEnd(summed_) && share_->AtEnd(received_);
  }
  // The stop whose messages or room it needs to go on.
  int waits_for() const { return 1 - share_->route().mine; }

 private:
  // To the next cell of the same owner.
  void StepOn(CellPlace* place) const;
  // Each does one cell; false when a message or room is lacking, or nothing is left.
  bool SendTerm();
  bool Sum();
  bool ReceiveSum();
  void DeliverHere(const PlacedCell& at, const char* from) const;

  const Share* share_ = nullptr;
  CellPlace sent_;      // the other's cell whose terms are sent next
  CellPlace summed_;    // the own one that is added up next
  CellPlace received_;  // the other's whose sums come back next
  PieceWriter terms_to_, sums_to_;
  PieceReader terms_from_, sums_from_;
  std::vector<char> sum_;      // of a cell
  std::vector<char> rounded_;  // the same
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_PAIR_FLOW_H_
