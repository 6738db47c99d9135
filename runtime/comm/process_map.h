// Which process runs which ranks: neighbours together, so that a group's members, which ascend,
// meet every process once.

#ifndef MGC_RUNTIME_COMM_PROCESS_MAP_H_
#define MGC_RUNTIME_COMM_PROCESS_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/load/rank_range.h"

namespace mgc {

class ProcessMap {
 public:
  // All ranks in one process.
  explicit ProcessMap(int64_t ranks) : begins_{0, ranks} {}
  // As even as can be, the first processes with one rank more; with `ranks_per_process` above 0
  // that many each and the rest in the last. InvalidArgument where processes would be without ranks
  // or ranks without a process, with the nearest legal number of processes.
  static absl::StatusOr<ProcessMap> Create(int64_t ranks, int64_t processes,
                                           int64_t ranks_per_process = 0);

  int processes() const { return static_cast<int>(begins_.size()) - 1; }
  int64_t ranks() const { return begins_.back(); }
  RankRange RanksOf(int process) const {
    return {begins_[static_cast<size_t>(process)], begins_[static_cast<size_t>(process) + 1]};
  }
  int ProcessOf(int64_t rank) const;

 private:
  std::vector<int64_t> begins_;  // first ranks, and the number of ranks
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_PROCESS_MAP_H_
