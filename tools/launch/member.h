// What a process that MPI has started is told of the others before they connect.

#ifndef MGC_TOOLS_LAUNCH_MEMBER_H_
#define MGC_TOOLS_LAUNCH_MEMBER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "kernels/simd_level.h"

namespace mgc {

struct Member {
  int64_t pid = 0;
  int board = -1;                               // its file
  uint64_t board_key = 0;                       // Board::key
  SimdLevel simd_level = SimdLevel::kBaseline;  // the best it may use
  std::string host;
  std::vector<int> processors;  // that it may use
};

// This process.
Member OwnMember(int board, uint64_t board_key, SimdLevel simd_level);

std::string PackMember(const Member& member);
Member UnpackMember(const std::string& text);

// Threads for a process: those of one host that may use the same processors share them out.
int WorkersOf(const std::vector<Member>& members, size_t self);

// The least level of all.
SimdLevel CommonLevel(const std::vector<Member>& members);
// Where they differ, what is used and why: `kernels are of AVX2, the most that all processes have
// (process 1, host b; process 0, host a, has AVX-512)`.
absl::optional<std::string> CommonLevelNote(const std::vector<Member>& members);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_MEMBER_H_
