// Ranks that lie one after the other: those of one process.

#ifndef MGC_RUNTIME_LOAD_RANK_RANGE_H_
#define MGC_RUNTIME_LOAD_RANK_RANGE_H_

#include <cstdint>

namespace mgc {

struct RankRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool Contains(int64_t rank) const { return rank >= begin && rank < end; }
};

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_RANK_RANGE_H_
