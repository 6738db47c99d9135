// Finds the loops in a list of actions, so that thousands of them read as a few.

#ifndef MGC_TOOLS_VIEWS_REPEATS_H_
#define MGC_TOOLS_VIEWS_REPEATS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mgc {

// An action or a transfer: `3F` for micro-batch 2.
struct ScheduleEntry {
  std::string word;
  int64_t micro_batch = -1;  // -1: none
};

// `3F2`
std::string ToString(const ScheduleEntry& entry);

// `entries` run `times` times, each time with micro-batches `shift` higher.
struct Loop {
  std::vector<ScheduleEntry> entries;
  int64_t times = 1;
  int64_t shift = 0;
};

// Loops that, run one after another, give `entries`. A loop has at most 64 entries and repeats at
// least twice, or once with any number of entries.
std::vector<Loop> FindLoops(const std::vector<ScheduleEntry>& entries);

// `0F0 0F1 6 x (0F2 0B0) +1 0B6 0B7`
std::string ToString(const std::vector<Loop>& loops);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_REPEATS_H_
