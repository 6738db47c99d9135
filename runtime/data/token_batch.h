// The samples of a text that one step takes, read before the step asks for them.

#ifndef MGC_RUNTIME_DATA_TOKEN_BATCH_H_
#define MGC_RUNTIME_DATA_TOKEN_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "runtime/data/data.h"

namespace mgc {

// Rows are those of the global batch: row i is the sample i behind the step's first one.
class TokenBatch {
 public:
  // Room for `rows` of a batch of `batch_size` rows, each of seq_length + 1 tokens.
  TokenBatch(absl::Span<const int64_t> rows, int64_t batch_size, int64_t seq_length);

  // Reads a row, one of those there is room for. Tokens are compared with no vocabulary here.
  void Read(const TokenDataset& text, int64_t row, int64_t sample);
  // Nothing is read any more.
  void Clear();

  // All tokens of a row that has been read; empty of any other, and of one whose reading failed:
  // who needs it reads it then, and has the error.
  absl::Span<const int32_t> Row(int64_t row) const;

 private:
  int64_t stride_;               // tokens of a row
  std::vector<int64_t> places_;  // of each row in tokens_; -1 without room
  std::vector<bool> read_;       // of each row
  std::vector<int32_t> tokens_;
};

// The rows of a global batch of which ranks [begin, end) load what is of the text; ascending.
std::vector<int64_t> TextRowsOf(const Plan& plan, int64_t begin, int64_t end);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKEN_BATCH_H_
