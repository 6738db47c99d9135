// A large sum or gather between processes that stand in a line, in the order of their members.
//
//   sums     up the line: every process adds its members' terms to what comes from the one before
//            it; the last one has the sum, in ascending order of members. Down the line: the
//            result, as far as somebody needs it. What comes is a sum of wide elements
//            (runtime/comm/arithmetic.h), or the one term that there is so far as it is.
//   gathers  up the line what processes before have, down the line what those behind have.
//
// However many ranks a process has, and processes a host, every link is crossed once in each
// direction. Cells follow each other, so that all processes work at the same time.

#ifndef MGC_RUNTIME_COMM_LINE_FLOW_H_
#define MGC_RUNTIME_COMM_LINE_FLOW_H_

#include <vector>

#include "runtime/comm/flow.h"
#include "runtime/comm/stream.h"

namespace mgc {

class LineFlow : public Flow {
 public:
  LineFlow();

  void Begin(const Share& share, Link& link) override;
  bool Advance() override;
  bool done() const override { return share_->AtEnd(up_) && share_->AtEnd(down_); }

 private:
  // True when the cell is done with; false when a message or room is lacking.
  bool Up(const PlacedCell& at);
  bool Down(const PlacedCell& at);
  bool SumUp(const PlacedCell& at);
  bool SumDown(const PlacedCell& at);
  bool GatherUp(const PlacedCell& at);
  bool GatherDown(const PlacedCell& at);
  // Gives a cell's elements, `own` ones or those that have come by `from`, to the neighbour behind
  // `to`, if that is not null, and to the members here, unless they are `own`.
  bool PassOn(const PlacedCell& at, const char* own, PieceReader* from, PieceWriter* to);
  bool FinishSum(const PlacedCell& at, const char* before);
  bool IsOneTerm(size_t stop) const;
  // Of a cell that a stop sends up.
  int64_t BytesUp(const PlacedCell& at, size_t stop) const;
  void Add(const PlacedCell& at, const char* before, char* sum) const;
  // Whether a process before this one receives the cell's sum.
  bool IsNeededBefore(const PlacedCell& at) const;
  void DeliverHere(const PlacedCell& at, const char* from);

  const Share* share_ = nullptr;
  CellPlace up_, down_;
  PieceWriter to_next_, to_previous_;
  PieceReader from_next_, from_previous_;
  std::vector<char> sum_;      // of a cell
  std::vector<char> rounded_;  // the same
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_LINE_FLOW_H_
