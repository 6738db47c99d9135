// An all-reduce that a library does between processes: the terms of a process's own members are
// added here, in ascending order, and what comes back goes to all of them.
//
// Cells go through the library in pieces, so that exchanges of a bucket share one, no bucket needs
// its memory twice, and one piece is added up while another travels. Elements of two bytes travel
// as f32 and are rounded once, at the end.

#ifndef MGC_RUNTIME_COMM_LIBRARY_FLOW_H_
#define MGC_RUNTIME_COMM_LIBRARY_FLOW_H_

#include <cstdint>
#include <vector>

#include "graph/types/tensor_type.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/flow.h"

namespace mgc {

class LibraryFlow : public Flow {
 public:
  // `library` must outlive the flow; null: it is never begun.
  explicit LibraryFlow(AllReduceLibrary* library);

  // Whether a collective can go this way.
  static bool Serves(const Share& share);

  void Begin(const Share& share, Link& link) override;
  bool Advance() override;
  bool done() const override { return share_->AtEnd(taken_); }

 private:
  // Neighbouring cells of one type.
  struct Piece {
    DType dtype = DType::kF32;
    CellPlace end;
    int64_t count = 0;  // elements
  };
  Piece PieceAt(const CellPlace& begin) const;
  // Each does one piece; false when room or a result is lacking, or nothing is left.
  bool StartPiece();
  bool TakePiece();

  AllReduceLibrary* const library_;
  const Share* share_ = nullptr;
  LibraryGroup* group_ = nullptr;
  CellPlace started_;
  CellPlace taken_;
  std::vector<char> rounded_;  // of a cell
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_LIBRARY_FLOW_H_
