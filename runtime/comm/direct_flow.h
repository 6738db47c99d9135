// A collective in which every process sends what it has straight to those that need it, and these
// add it up: small ones, all-to-all, and a reduce-scatter where no process has several members.

#ifndef MGC_RUNTIME_COMM_DIRECT_FLOW_H_
#define MGC_RUNTIME_COMM_DIRECT_FLOW_H_

#include <cstdint>
#include <vector>

#include "runtime/comm/flow.h"
#include "runtime/comm/stream.h"

namespace mgc {

class DirectFlow : public Flow {
 public:
  // Of up to `stops` processes.
  explicit DirectFlow(size_t stops);

  void Begin(const Share& share, Link& link) override;
  bool Advance() override;
  bool done() const override;

 private:
  // What is being sent to one stop.
  struct Outgoing {
    CellPlace place;
    int64_t members = 0;  // terms of the cell that have been written
    PieceWriter writer;
  };

  bool SendTo(size_t stop);
  bool SendCell(const PlacedCell& at, Outgoing* out);
  bool Receive();
  // True when the cell is done with.
  bool ReceiveCell(const PlacedCell& at);
  bool AddTerms(const PlacedCell& at);
  bool Copy(const PlacedCell& at, const MemberRange& receivers);
  bool IsSentToAll(const CellPlace& place) const;

  const Share* share_ = nullptr;
  std::vector<Outgoing> outgoing_;    // by stop
  std::vector<PieceReader> readers_;  // the same
  CellPlace received_;
  int64_t added_ = 0;          // terms of the cell
  std::vector<char> sum_;      // of a cell
  std::vector<char> rounded_;  // the same
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_DIRECT_FLOW_H_
