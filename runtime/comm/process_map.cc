#include "runtime/comm/process_map.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mgc {

absl::StatusOr<ProcessMap> ProcessMap::Create(int64_t ranks, int64_t processes,
                                              int64_t ranks_per_process) {
  if (processes < 1 || processes > ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan of ", ranks, " ranks cannot run in ", processes,
                     " processes; nearest legal: ", std::clamp<int64_t>(processes, 1, ranks)));
  }
  if (ranks_per_process > 0) {
    const int64_t needed = (ranks + ranks_per_process - 1) / ranks_per_process;
    if (needed != processes) {
      return absl::InvalidArgumentError(absl::StrCat("a plan of ", ranks, " ranks with ",
                                                     ranks_per_process, " ranks a process needs ",
                                                     needed, " processes, not ", processes));
    }
  }
  ProcessMap map(ranks);
  map.begins_.pop_back();
  for (int64_t p = 1; p <= processes; ++p) {
    const int64_t even = ranks / processes * p + std::min(p, ranks % processes);
    map.begins_.push_back(ranks_per_process > 0 ? std::min(ranks, p * ranks_per_process) : even);
  }
  return map;
}

int ProcessMap::ProcessOf(int64_t rank) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), rank);
  return static_cast<int>(behind - begins_.begin()) - 1;
}

}  // namespace mgc
