// The .idx of Megatron-LM's pair, checked against its .bin.

#ifndef MGC_RUNTIME_DATA_TOKENS_IDX_FILE_H_
#define MGC_RUNTIME_DATA_TOKENS_IDX_FILE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/base/positional_file.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {

struct IdxContent {
  TokenType type = TokenType::kU16;
  int64_t sequences = 0;
  int64_t documents = 0;
};

// Reads all of it once, a piece at a time: sizes must be those of the file and of the .bin's
// `bin_bytes`, sequences must lie one behind the other without holes, documents ascend from
// sequence 0 to the last. InvalidArgument, with the name and the numbers, for the first thing that
// is wrong.
absl::StatusOr<IdxContent> CheckIdx(const PositionalFile& idx, int64_t bin_bytes);

// The first byte of a sequence in the .bin; that behind the last one for their number.
absl::StatusOr<int64_t> SequenceOffset(const PositionalFile& idx, const IdxContent& content,
                                       int64_t bin_bytes, int64_t sequence);

// The first byte of a document in the .bin of `bin_bytes`, of one below the number of documents.
absl::StatusOr<int64_t> DocumentOffset(const PositionalFile& idx, const IdxContent& content,
                                       int64_t bin_bytes, int64_t document);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_IDX_FILE_H_
