// A file of tokens that is open, of any format (runtime/data/tokens/token_format.h).
//
// Everything that a file says of itself is checked when it is opened; tokens stay on the disk and
// are checked when they are read. Opening takes a look at the header, and of an .idx one pass over
// its lengths; reading any token takes one read of the disk.

#ifndef MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_H_
#define MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/base/positional_file.h"
#include "runtime/data/tokens/idx_file.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {

// Immutable; any number of threads.
class TokenFile {
 public:
  // `path` is a pair of Megatron-LM's if it ends in .idx, if an .idx lies beside a .bin, or if it
  // is the common begin of both and no file; else of llm.c, if it begins with a magic number of it;
  // else of nanoGPT, if it ends in .bin; else bytes. A pipe is read whole. Errors of opening it,
  // and InvalidArgument, which names the file, for one that does not keep what its format promises.
  static absl::StatusOr<std::shared_ptr<const TokenFile>> Open(const std::string& path);

  // Bytes in memory; `name` stands for the file in messages.
  static std::shared_ptr<const TokenFile> FromBytes(std::string bytes, absl::string_view name);

  // Tokens in memory, of the format `memory`.
  static std::shared_ptr<const TokenFile> FromTokens(absl::Span<const int32_t> tokens,
                                                     absl::string_view name);

  // kMockTokens tokens below `vocabulary`, above 0, which follow from `seed`: runs that count up by
  // one, each from a random token on.
  static constexpr int64_t kMockTokens = int64_t{1} << 40;
  static constexpr int64_t kMockRun = 64;
  static std::shared_ptr<const TokenFile> Mock(uint64_t seed, int64_t vocabulary);

  const std::string& name() const { return name_; }  // of the file with the tokens, escaped
  TokenFormat format() const { return format_; }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }

  // Documents are known of Megatron-LM's files alone; none else.
  absl::optional<int64_t> documents() const;
  // The first token of a document, and tokens() for the number behind the last one.
  absl::StatusOr<int64_t> DocumentBegin(int64_t document) const;

  // Sequences, as documents: one or several make a document.
  absl::optional<int64_t> sequences() const;
  absl::StatusOr<int64_t> SequenceBegin(int64_t sequence) const;

  // Copies tokens from `begin` on, all in the file. Where `vocabulary` is above 0, an id outside of
  // it is InvalidArgument; so is one that no i32 holds. Errors name file, token and id.
  absl::Status Read(int64_t begin, int64_t vocabulary, absl::Span<int32_t> tokens) const;

  // Looks for ids outside of `vocabulary`, above 0, among tokens [begin, end): all of them, or
  // about `most`, everywhere in them; none where the type of the file can hold no such id.
  // InvalidArgument with the first that it sees, how many there are and the largest; errors of
  // Read.
  absl::Status CheckVocabulary(int64_t begin, int64_t end, int64_t vocabulary, int64_t most) const;

 private:
  TokenFile(std::string name, TokenFormat format, TokenType type)
      : name_(std::move(name)), format_(format), type_(type) {}

  static absl::StatusOr<std::shared_ptr<const TokenFile>> OpenPair(const std::string& prefix);
  static absl::StatusOr<std::shared_ptr<const TokenFile>> OpenSingle(const std::string& path);

  // Tokens of a mock.
  void MakeUp(int64_t begin, absl::Span<int32_t> tokens) const;
  absl::Status OutsideError(int64_t token, absl::string_view id, int64_t vocabulary) const;
  // Fills `out` with the bytes from `offset` behind the header on.
  absl::Status ReadBytes(int64_t offset, absl::Span<char> out) const;

  std::string name_;
  TokenFormat format_;
  TokenType type_;
  int64_t tokens_ = 0;
  int64_t header_bytes_ = 0;
  struct MockSource {
    uint64_t seed;
    int64_t vocabulary;
  };
  absl::optional<MockSource> mock_;      // none: file_ or bytes_
  absl::optional<PositionalFile> file_;  // none: bytes_ are the content
  std::string bytes_;
  absl::optional<PositionalFile> idx_;  // of a pair
  IdxContent idx_content_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_TOKEN_FILE_H_
