// Writes token files of any format but plain bytes, document by document.
//
// The files have temporary names until they are whole: what was at their place stays until then,
// and a writer that fails or is killed leaves it as it was. What it had saved by then, a later
// writer of the same tokens goes on with.

#ifndef MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_WRITER_H_
#define MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/base/shared_file.h"
#include "runtime/data/tokens/partial_file.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {

class TokenFileWriter {
 public:
  // `prefix` is the path without .bin and .idx, which are put behind it. `vocabulary` decides the
  // type of a token (TypeFor); InvalidArgument where the format has none. A line `mark` says what
  // tokens are made of and how: documents that a writer of the same mark has saved are there
  // already. FailedPrecondition while another writer is at work.
  static absl::StatusOr<std::unique_ptr<TokenFileWriter>> Create(const std::string& prefix,
                                                                 TokenFormat format,
                                                                 int64_t vocabulary,
                                                                 absl::string_view mark = "");

  // Appends a document of ids below the vocabulary; fewer than 2^31. InvalidArgument when the file
  // would hold more than its format can count.
  absl::Status Append(absl::Span<const int32_t> document);

  // Puts what has been appended so far onto the disk, to go on from. `source` says in a word what
  // the documents' texts were.
  absl::Status Save(absl::string_view source);
  // Of the documents that were there already; nothing where there were none.
  const std::string& saved_source() const { return saved_source_; }

  // Writes what is left, and gives the files their names: the .idx after the .bin. Call it last.
  absl::Status Finish();

  // Whether it has a mark.
  bool keeps() const { return !mark_.empty(); }
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }
  TokenType type() const { return type_; }
  const std::string& path() const { return path_; }  // of the tokens

 private:
  // Puts bytes into a file, one behind the other, many at a time.
  class Appender {
   public:
    explicit Appender(std::unique_ptr<SharedFile> file) : file_(std::move(file)) {}

    absl::Status Append(absl::string_view bytes);
    absl::Status AppendNumber(uint64_t number, int64_t size);
    absl::Status Flush();
    // The next byte goes there.
    void GoOnAt(int64_t offset) { written_ = offset; }
    SharedFile& file() { return *file_; }

   private:
    absl::Status FlushIfFull();

    std::unique_ptr<SharedFile> file_;
    std::string pending_;
    int64_t written_ = 0;
  };

  TokenFileWriter(std::string prefix, TokenFormat format, TokenType type, absl::string_view mark)
      : prefix_(std::move(prefix)),
        path_(prefix_ + ".bin"),
        format_(format),
        type_(type),
        mark_(mark) {}

  std::string SavedPath() const { return prefix_ + ".partial"; }
  int64_t TokensBegin() const;
  absl::Status GoOn();
  absl::Status GoOnAt(int64_t offset);
  absl::StatusOr<bool> ReadSaved();
  absl::Status WriteIdx();

  const std::string prefix_, path_;
  const TokenFormat format_;
  const TokenType type_;
  const std::string mark_;
  absl::optional<PartialFile> partial_;  // of the tokens, where there is a mark
  absl::optional<Appender> bin_, idx_;
  std::string saved_source_;
  std::string lengths_;  // of documents, as the .idx has them
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_WRITER_H_
