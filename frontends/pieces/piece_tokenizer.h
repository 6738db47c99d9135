// Tokenizers of SentencePiece (Kudo and Richardson 2018): unigram and BPE models in a
// `tokenizer.model`, as Llama 2, Gemma and T5 have it. Its own library does the work.
//
// A text is normalized as the model says, so that tokens need not read back as the same text; bytes
// that are no UTF-8 become U+FFFD. What is no piece is tokens of its bytes where the model has
// them, else its unknown piece.

#ifndef MGC_FRONTENDS_PIECES_PIECE_TOKENIZER_H_
#define MGC_FRONTENDS_PIECES_PIECE_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/tokenize/text_tokenizer.h"

namespace mgc {

// The file with a model behind `path`: a `.model` file, or the tokenizer.model of a folder that has
// no tokenizer.json; none for all else.
absl::optional<std::string> PieceModelAt(const std::string& path);

// Reads it. What ends documents is the model's end of a sentence, `</s>` where it has its usual
// name. Errors of ReadFile, and InvalidArgument for what is no model.
absl::StatusOr<std::unique_ptr<TextTokenizer>> ReadPieceModel(const std::string& path);

// Of its content; `file` stands for it in messages.
absl::StatusOr<std::unique_ptr<TextTokenizer>> ParsePieceModel(absl::string_view model,
                                                               absl::string_view file);

}  // namespace mgc

#endif  // MGC_FRONTENDS_PIECES_PIECE_TOKENIZER_H_
