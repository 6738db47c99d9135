// Rows of a vocabulary-parallel table. The padding belongs to the plan: the logical tensor keeps
// its `vocab` rows, every tp rank stores the same number of physical ones, and the last ones are
// unused.

#ifndef MGC_PASSES_VOCAB_PADDING_H_
#define MGC_PASSES_VOCAB_PADDING_H_

#include <cstdint>

namespace mgc {

// Physical rows per rank: the least multiple of `divisible_by` of which tp hold the vocabulary,
// ceil(vocab / (divisible_by * tp)) * divisible_by. With divisible_by = Megatron's
// --make-vocab-size-divisible-by, tp times this is its padded vocabulary. All arguments >= 1.
int64_t VocabRowsPerRank(int64_t vocab, int64_t tp, int64_t divisible_by = 1);

// Rows of rank `tp_rank`, the first at logical row tp_rank * rows_per_rank, that exist logically;
// may be 0.
int64_t ValidVocabRows(int64_t vocab, int64_t rows_per_rank, int64_t tp_rank);

}  // namespace mgc

#endif  // MGC_PASSES_VOCAB_PADDING_H_
