// What a pipeline schedule is asked to be, and which of these are legal.

#ifndef MGC_PASSES_CONFIG_SCHEDULE_SPEC_H_
#define MGC_PASSES_CONFIG_SCHEDULE_SPEC_H_

#include <cstdint>
#include <vector>

#include "graph/base/diagnostic.h"
#include "passes/config/parallel_config.h"

namespace mgc {

// Actions a schedule may have at most, over all ranks. A plan of so many has no more entries than
// its readers take (graph/plan/plan_fold.h), and compiles in seconds.
inline constexpr int64_t kMaxScheduleActions = int64_t{1} << 19;

struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  int64_t group_size = 0;  // interleaved only, otherwise ignored; 0 = ChooseGroupSize
};

// Smallest number of micro-batches per group with which interleaving has no more than the ideal
// bubble (pp - 1) / (vp * M): in [pp, M], and M mod g is 0 or at least pp. With M < pp there is
// none; M is returned, which runs, but never at the ideal bubble.
int64_t ChooseGroupSize(int64_t pp, int64_t micro_batches);

// G10 (vp > 1 needs pp > 1), S1 (vp > 1 needs interleaved), P13 (an explicit group size outside of
// [pp, M], or with a rest of M in [1, pp)), S2 (more than kMaxScheduleActions), S0 (a size below
// 1).
Diagnostics CheckSchedule(const ScheduleSpec& spec);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_SCHEDULE_SPEC_H_
