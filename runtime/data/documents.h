// The documents of a text, each by itself.

#ifndef MGC_RUNTIME_DATA_DOCUMENTS_H_
#define MGC_RUNTIME_DATA_DOCUMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "runtime/data/data.h"

namespace mgc {

struct Document {
  int64_t number = 0;  // among all of the text, from 0
  // Its tokens alone, in order, filled up to whole samples with the token that ends documents.
  // Behind an end nothing is a target; of a document that ends with its file the end itself is one.
  TokenDataset text;
};

// Reads the documents of a text whose ends are known, one after the other: each ends with the end's
// token or with its file.
class DocumentReader {
 public:
  // `text` has ends() and outlives the reader; the order and the weights of its samples say
  // nothing here.
  explicit DocumentReader(const TokenDataset& text);

  // The next document in which something is a target, of two tokens and more; none behind the last
  // one. Errors of TokenFile::Read.
  absl::StatusOr<absl::optional<Document>> Next();

 private:
  // The tokens of the next document, empty behind the last one.
  absl::StatusOr<std::vector<int32_t>> ReadNext();
  // Whether there are tokens of the file at `buffer_[in_buffer_]`, reading on where there are none.
  absl::StatusOr<bool> Fill();

  const int32_t end_;
  const int64_t seq_length_;
  const std::vector<TokenPart> parts_;
  size_t part_ = 0;
  int64_t next_ = 0;  // token of the part that is read next, from its begin
  std::vector<int32_t> buffer_;
  size_t in_buffer_ = 0;
  int64_t number_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_DOCUMENTS_H_
