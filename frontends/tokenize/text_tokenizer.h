// Texts to token ids and back, of whatever kind a tokenizer is.

#ifndef MGC_FRONTENDS_TOKENIZE_TEXT_TOKENIZER_H_
#define MGC_FRONTENDS_TOKENIZE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "frontends/tokenize/vocabulary.h"

namespace mgc {

// Texts of this size and above are not tokenized at once.
inline constexpr size_t kMaxTextBytes = size_t{1} << 31;

// Tokenizes texts, one a thread.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the tokens of `text`, which has fewer than kMaxTextBytes. InvalidArgument for a text
  // that this kind of tokenizer cannot take.
  virtual absl::Status AppendTokens(absl::string_view text, std::vector<TokenId>* tokens) = 0;
};

// Any number of threads.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;

  // One more than the largest id that it gives.
  virtual int64_t vocabulary_size() const = 0;
  // The token that is written like this.
  virtual absl::optional<TokenId> Find(absl::string_view content) const = 0;
  // What ends a document, where the tokenizer says it.
  virtual absl::optional<TokenId> end_of_document() const = 0;
  // The tokenizer outlives the encoder.
  virtual std::unique_ptr<TextEncoder> NewEncoder() const = 0;

  // Appends what `tokens` stand for. InvalidArgument, with the place, for an id that is none.
  virtual absl::Status Decode(absl::Span<const TokenId> tokens, std::string* text) const = 0;
  // Whether the text of tokens is that of any two parts of them, one behind the other. Otherwise it
  // is so of documents alone.
  virtual bool decodes_in_parts() const = 0;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_TEXT_TOKENIZER_H_
