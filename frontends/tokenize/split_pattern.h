// Pre-tokenization: where a text falls into words, across which no token goes.
//
// Families write their rule as a regular expression. The three that are in use are recognized and
// carried out by hand, in linear time and with one look at Unicode's properties a character;
// others are refused when a tokenizer is read.

#ifndef MGC_FRONTENDS_TOKENIZE_SPLIT_PATTERN_H_
#define MGC_FRONTENDS_TOKENIZE_SPLIT_PATTERN_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace mgc {

enum class SplitPattern {
  kGpt2,    // words with one blank before; runs of digits
  kLlama3,  // digits in groups of three; words with any one character before; line ends together
  kQwen2,   // as Llama 3, every digit by itself
};

// `gpt2`, `llama3`, `qwen2`.
absl::string_view NameOf(SplitPattern pattern);
absl::Span<const absl::string_view> SplitPatternNames();
absl::optional<SplitPattern> SplitPatternNamed(absl::string_view name);

// The regular expression, as tokenizer files have it.
absl::string_view RegexOf(SplitPattern pattern);
absl::optional<SplitPattern> SplitPatternOf(absl::string_view regex);

// The end of the word that begins at `begin`, which lies in the text.
size_t WordEnd(SplitPattern pattern, absl::string_view text, size_t begin);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_SPLIT_PATTERN_H_
