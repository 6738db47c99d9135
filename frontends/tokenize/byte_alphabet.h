// GPT-2's spelling of bytes: byte-level vocabularies write every token as printable characters, one
// a byte, so that JSON can hold them.

#ifndef MGC_FRONTENDS_TOKENIZE_BYTE_ALPHABET_H_
#define MGC_FRONTENDS_TOKENIZE_BYTE_ALPHABET_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace mgc {

// The character that stands for a byte: 33 to 126, 161 to 172 and 174 to 255 for themselves, the
// other 68 bytes, in ascending order, U+0100 and on.
int SpellingOf(unsigned char byte);

// `bytes` spelt, in UTF-8.
std::string SpellBytes(absl::string_view bytes);

// The bytes that `spelling` spells; none where it has a character that stands for none.
absl::optional<std::string> BytesSpelled(absl::string_view spelling);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_BYTE_ALPHABET_H_
