#include "passes/vocab_padding.h"

#include <algorithm>

#include "passes/nearest_legal.h"

namespace mgc {

int64_t VocabRowsPerRank(int64_t vocab, int64_t tp, int64_t divisible_by) {
  const int64_t step = SaturatingMultiply(divisible_by, tp);
  return SaturatingMultiply(vocab / step + (vocab % step != 0 ? 1 : 0), divisible_by);
}

int64_t ValidVocabRows(int64_t vocab, int64_t rows_per_rank, int64_t tp_rank) {
  const int64_t first = SaturatingMultiply(tp_rank, rows_per_rank);
  return std::clamp<int64_t>(vocab - first, 0, rows_per_rank);
}

}  // namespace mgc
