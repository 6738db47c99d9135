// Tokenizers from files, as Hugging Face and OpenAI write them.
//
// Byte-level BPE alone; whatever of a file would change tokens and is not carried out is refused.
// Labels in messages, beside J1 to J5 (graph/base/json_reader.h):
//   K1  the vocabulary: an id twice, out of range or for two tokens, a byte without a token, a
//   token
//       that spells no bytes
//   K2  the merges: one that is no two tokens, whose result is no token, or that stands there twice

#ifndef MGC_FRONTENDS_TOKENIZE_READ_TOKENIZER_H_
#define MGC_FRONTENDS_TOKENIZE_READ_TOKENIZER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontends/tokenize/tokenizer.h"

namespace mgc {

// Reads `path`: a file with the content of a tokenizer.json; or a folder with a tokenizer.json,
// else with vocab.json and merges.txt. Where the folder has a tokenizer_config.json, its eos_token
// ends documents; else the first of <|endoftext|>, <|end_of_text|>, </s> that is a token. Errors of
// ReadFile, and InvalidArgument with all that is wrong with a file.
absl::StatusOr<Tokenizer> ReadTokenizer(const std::string& path);

// The content of a tokenizer.json; `file` is its name in messages.
absl::StatusOr<Tokenizer> ParseTokenizerJson(absl::string_view text, absl::string_view file);

// GPT-2's pair of files: ids by token; and merges, a line each, behind a line with their version.
struct NamedText {
  absl::string_view text, file;
};
absl::StatusOr<Tokenizer> ParseGpt2Files(const NamedText& vocabulary, const NamedText& merges);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_READ_TOKENIZER_H_
