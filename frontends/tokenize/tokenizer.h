// Texts to token ids and back, as byte-level BPE does it (GPT-2, Llama 3, Qwen 2).
//
// A text falls into added tokens and what lies between; that is normalized, falls into words, and
// the bytes of each word are merged. Every byte has a token of its own, so that no text is refused:
// what is not UTF-8 becomes tokens of its bytes, and without a normalizer the tokens of any bytes
// read back as these bytes.

#ifndef MGC_FRONTENDS_TOKENIZE_TOKENIZER_H_
#define MGC_FRONTENDS_TOKENIZE_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "frontends/tokenize/added_tokens.h"
#include "frontends/tokenize/split_pattern.h"
#include "frontends/tokenize/text_tokenizer.h"
#include "frontends/tokenize/vocabulary.h"

namespace mgc {

// What a tokenizer is made of.
struct TokenizerParts {
  std::vector<std::string> tokens;  // of Vocabulary; without added tokens, which may lie behind
  std::vector<Merge> merges;
  std::vector<AddedToken> added;  // ids and contents all different
  SplitPattern pattern = SplitPattern::kGpt2;
  bool normalize_nfc = false;
  // A word that is a token as a whole is taken without looking at merges.
  bool whole_words_first = false;
  // What ends a document, where the files say it.
  absl::optional<TokenId> end_of_document;
};

class Tokenizer : public TextTokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);

  int64_t vocabulary_size() const override { return static_cast<int64_t>(texts_.size()); }
  // Without added tokens: words are not made of those.
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // What a token below vocabulary_size() stands for.
  const std::string& TextOf(TokenId token) const { return texts_[static_cast<size_t>(token)]; }
  absl::Span<const AddedToken> added() const { return added_; }
  SplitPattern pattern() const { return pattern_; }
  bool normalizes() const { return normalize_nfc_; }
  bool whole_words_first() const { return whole_words_first_; }
  absl::optional<TokenId> end_of_document() const override { return end_of_document_; }
  void EndDocumentsWith(absl::optional<TokenId> token) { end_of_document_ = token; }

  // The token that is written like this: an added one by its content, another by its bytes.
  absl::optional<TokenId> Find(absl::string_view content) const override;

  absl::Status Decode(absl::Span<const TokenId> tokens, std::string* text) const override;
  bool decodes_in_parts() const override { return true; }
  std::unique_ptr<TextEncoder> NewEncoder() const override;

 private:
  friend class Encoder;

  std::vector<AddedToken> added_;
  AddedTokenFinder before_normalizing_, after_normalizing_;
  std::vector<std::string> texts_;  // of all tokens
  Vocabulary vocabulary_;
  SplitPattern pattern_;
  bool normalize_nfc_;
  bool whole_words_first_;
  absl::optional<TokenId> end_of_document_;
};

// A tokenizer of single bytes: ids 0 to 255, and 256, which no text has, to end documents.
Tokenizer ByteTokenizer();

// Tokenizes texts, one a thread. Remembers words, so that common ones cost a look-up.
class Encoder : public TextEncoder {
 public:
  // `tokenizer` outlives it.
  explicit Encoder(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), merger_(tokenizer.vocabulary()) {}

  // Appends the tokens of `text`, which has fewer than kMaxTextBytes.
  void Append(absl::string_view text, std::vector<TokenId>* tokens);
  absl::Status AppendTokens(absl::string_view text, std::vector<TokenId>* tokens) override {
    Append(text, tokens);
    return absl::OkStatus();
  }

 private:
  struct Remembered {
    size_t begin, count;  // in remembered_tokens_
  };

  void AppendNormalized(absl::string_view text, std::vector<TokenId>* tokens);
  void AppendWords(absl::string_view text, std::vector<TokenId>* tokens);
  void AppendWord(absl::string_view word, std::vector<TokenId>* tokens);

  const Tokenizer& tokenizer_;
  WordMerger merger_;
  absl::flat_hash_map<std::string, Remembered> remembered_;
  std::vector<TokenId> remembered_tokens_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_TOKENIZER_H_
