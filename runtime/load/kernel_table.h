// The kernels of a plan: one for every distinct use of an op.
//
// Ranks, layers and calls share a kernel whenever nothing it could depend on differs: where a
// rank's piece begins counts only along factors whose place the op's meaning needs. Everything that
// is missing or asks for too much scratch is collected, so that a user sees all of it at once.

#ifndef MGC_RUNTIME_LOAD_KERNEL_TABLE_H_
#define MGC_RUNTIME_LOAD_KERNEL_TABLE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "kernels/kernel.h"

namespace mgc {

class KernelTable {
 public:
  // `mesh` and what `kernels` point to must outlive the table. `width`: threads that may work on
  // one kernel.
  KernelTable(const KernelList& kernels, const Mesh& mesh, uint64_t seed, int width);

  // The kernel of a compute instruction of a checked segment for one layer on one rank; null when
  // there is none that may run, which Refused then tells.
  const Kernel* Find(const Segment& segment, const Instr& instr, int layer, int64_t rank);

  // OK, or Unimplemented with a line for every use of an op that no kernel serves, or whose kernel
  // asks for more scratch than the op allows.
  absl::Status Refused() const;

  // Scratch that serves each of the kernels found, for all of its threads.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  int64_t size() const { return static_cast<int64_t>(kernels_.size()); }

 private:
  // What all uses of one instruction have in common.
  struct Use {
    int number = 0;
    bool by_layer = false;       // its attributes name the layer
    KernelSpec spec;             // pieces to be filled in
    std::vector<AxisList> axes;  // per factor
    std::vector<bool> placed;    // per factor: whether its begin counts
    AxisSet moved;               // of a collective op: where the rank's place counts
    absl::Status status;         // whether the operands' tiles fit together
  };

  const Use& UseOf(const Segment& segment, const Instr& instr);
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const Use& use, const Segment& segment,
                                               const Instr& instr, int layer,
                                               std::vector<DimPiece> pieces, int64_t rank) const;
  absl::Status CheckWorkspace(const Kernel& kernel, const Segment& segment, const Instr& instr);

  absl::flat_hash_map<std::string, KernelFactory> factories_;
  const KernelHost host_;
  const Mesh& mesh_;
  const uint64_t seed_;
  const int width_;
  int64_t workspace_bytes_ = 0;
  absl::flat_hash_map<const Instr*, std::unique_ptr<Use>> uses_;
  absl::flat_hash_map<std::string, std::unique_ptr<Kernel>> kernels_;  // null: refused
  std::set<std::string> refused_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_KERNEL_TABLE_H_
