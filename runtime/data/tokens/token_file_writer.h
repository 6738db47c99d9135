// Writes token files of any format but plain bytes, document by document.
//
// The files have temporary names until they are whole: what was at their place stays until then,
// and a writer that fails or is killed leaves it as it was.

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
#include "runtime/data/tokens/token_format.h"

namespace mgc {

class TokenFileWriter {
 public:
  // `prefix` is the path without .bin and .idx, which are put behind it. `vocabulary` decides the
  // type of a token (TypeFor); InvalidArgument where the format has none.
  static absl::StatusOr<std::unique_ptr<TokenFileWriter>> Create(const std::string& prefix,
                                                                 TokenFormat format,
                                                                 int64_t vocabulary);

  // Appends a document of ids below the vocabulary; fewer than 2^31. InvalidArgument when the file
  // would hold more than its format can count.
  absl::Status Append(absl::Span<const int32_t> document);

  // Writes what is left, and gives the files their names: the .idx after the .bin. Call it last.
  absl::Status Finish();

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
    SharedFile& file() { return *file_; }

   private:
    absl::Status FlushIfFull();

    std::unique_ptr<SharedFile> file_;
    std::string pending_;
    int64_t written_ = 0;
  };

  TokenFileWriter(std::string path, TokenFormat format, TokenType type)
      : path_(std::move(path)), format_(format), type_(type) {}

  absl::Status WriteIdx();

  const std::string path_;
  const TokenFormat format_;
  const TokenType type_;
  absl::optional<Appender> bin_, idx_;
  std::string lengths_;  // of documents, as the .idx has them
  int64_t tokens_ = 0;
  int64_t documents_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_WRITER_H_
