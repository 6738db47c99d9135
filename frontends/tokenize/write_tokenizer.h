// Tokenizers as files.

#ifndef MGC_FRONTENDS_TOKENIZE_WRITE_TOKENIZER_H_
#define MGC_FRONTENDS_TOKENIZE_WRITE_TOKENIZER_H_

#include <string>

#include "frontends/tokenize/tokenizer.h"

namespace mgc {

// The content of a tokenizer.json, as Hugging Face's libraries and ReadTokenizer take it. What ends
// documents is not part of the format: readers know it by its name.
std::string TokenizerJsonText(const Tokenizer& tokenizer);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_WRITE_TOKENIZER_H_
